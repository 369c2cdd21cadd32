package dq

import (
	"context"
	"time"
)

// Cancel cancels messages. It returns the state that each of them had, an empty one for an unknown id.
func (q *Queue) Cancel(ctx context.Context, ids ...string) ([]State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	reply, err := q.Do(ctx, "CANCEL", ids...)
	return read(reply, err, each(func(value interface{}) State { return State(text(value)) }))
}

// Reschedule changes the due time of a message: Delay or At. It returns false if the message was not pending.
func (q *Queue) Reschedule(ctx context.Context, id string, due DueOption) (bool, error) {
	reply, err := q.Do(ctx, "RESCHEDULE", append([]string{id}, due.dueWords()...)...)
	return read(reply, err, truth)
}

// Update replaces the payload of a message. It returns false if the message was not pending.
func (q *Queue) Update(ctx context.Context, id string, payload []byte) (bool, error) {
	reply, err := q.Do(ctx, "UPDATE", id, string(payload))
	return read(reply, err, truth)
}

// Signal gives a message this text, and ends its wait for it (Park, Parked). It returns false if the id is unknown or the
// message has ended.
func (q *Queue) Signal(ctx context.Context, id, data string) (bool, error) {
	reply, err := q.Do(ctx, "SIGNAL", id, "DATA", data)
	return read(reply, err, truth)
}

// Redrive makes dead messages pending again: those of IDs, up to Count of those that died first, or all. It returns how
// many.
func (q *Queue) Redrive(ctx context.Context, which ...RedriveOption) (int, error) {
	var words []string
	for _, one := range which {
		words = append(words, one.redriveWords()...)
	}
	if len(words) == 0 || words[0] != "IDS" {
		words = append([]string{"ALL"}, words...)
	}
	reply, err := q.Do(ctx, "REDRIVE", words...)
	return read(reply, err, whole)
}

// Purge removes messages for good: all of them, or those InState and of Group. It returns how many.
func (q *Queue) Purge(ctx context.Context, scope ...ScopeOption) (int, error) {
	reply, err := q.Do(ctx, "PURGE", scopeWords(scope)...)
	return read(reply, err, whole)
}

// Pause stops the deliveries of the queue, or of a Group, until Resume or For this long.
func (q *Queue) Pause(ctx context.Context, scope ...ScopeOption) error {
	_, err := q.Do(ctx, "PAUSE", scopeWords(scope)...)
	return err
}

// Resume ends a pause of the queue, or the pause and the hold of a Group.
func (q *Queue) Resume(ctx context.Context, scope ...ScopeOption) error {
	_, err := q.Do(ctx, "RESUME", scopeWords(scope)...)
	return err
}

func scopeWords(scope []ScopeOption) (words []string) {
	for _, one := range scope {
		words = append(words, one.scopeWords()...)
	}
	return words
}

// SetGroup changes settings of a group.
func (q *Queue) SetGroup(ctx context.Context, group string, settings ...GroupSetOption) error {
	words := []string{group}
	for _, one := range settings {
		words = append(words, one.groupSetWords()...)
	}
	_, err := q.Do(ctx, "GROUPSET", words...)
	return err
}

// Limit limits the messages that name it in Limits, by Rate, Concurrency and Weighted. Without an option the limit is
// removed. A name with * is a pattern, and each name that it matches is limited by itself.
func (q *Queue) Limit(ctx context.Context, name string, options ...LimitOption) error {
	words := []string{name}
	for _, one := range options {
		words = append(words, one.limitWords()...)
	}
	_, err := q.Do(ctx, "LIMIT", words...)
	return err
}

// Times says when a schedule fires: by a cron rule, or at an interval.
type Times struct {
	// Cron is a rule such as "0 3 * * *", of the time zone Zone (UTC by default).
	Cron, Zone string
	// Every is the interval, the first time at Start (by default one interval from now).
	Every time.Duration
	Start time.Time
	// Missed is what becomes of times that passed while the server was down: "SKIP", "ONCE" (the default) or "ALL".
	Missed string
	// Overlap "SKIP" sends nothing while the last message has not ended. The default is "QUEUE".
	Overlap string
	// Until is the last time at which it may fire.
	Until time.Time
	// Times is the number of messages after which it ends. 0 means that it goes on.
	Times int
	// Jitter is how much later a message may be due.
	Jitter time.Duration
}

func (t Times) words() (words []string) {
	for _, one := range [][2]string{{"CRON", t.Cron}, {"TZ", t.Zone}, {"MISSED", t.Missed}, {"OVERLAP", t.Overlap}} {
		if one[1] != "" {
			words = append(words, one[0], one[1])
		}
	}
	if t.Every > 0 {
		words = append(words, "EVERY", millis(t.Every))
	}
	if !t.Start.IsZero() {
		words = append(words, "START", unixMillis(t.Start))
	}
	if !t.Until.IsZero() {
		words = append(words, "UNTIL", unixMillis(t.Until))
	}
	if t.Times > 0 {
		words = append(words, "TIMES", count(t.Times))
	}
	if t.Jitter > 0 {
		words = append(words, "JITTER", millis(t.Jitter))
	}
	return words
}

// Schedule makes the server send the payload at these times. It returns the first of them.
func (q *Queue) Schedule(
	ctx context.Context, name string, times Times, payload []byte, options ...SendOption,
) (time.Time, error) {
	words := append(append([]string{name}, times.words()...), "PAYLOAD", string(payload))
	reply, err := q.Do(ctx, "SCHEDULE", append(words, sendWords(options)...)...)
	return read(reply, err, moment)
}

// Unschedule removes a schedule. It returns whether it was there.
func (q *Queue) Unschedule(ctx context.Context, name string) (bool, error) {
	reply, err := q.Do(ctx, "UNSCHEDULE", name)
	return read(reply, err, truth)
}

// PauseSchedule stops a schedule until it is resumed. It returns whether it is there.
func (q *Queue) PauseSchedule(ctx context.Context, name string) (bool, error) {
	reply, err := q.Do(ctx, "SCHEDULES", "PAUSE", name)
	return read(reply, err, truth)
}

// ResumeSchedule lets a schedule go on. The fires that it has missed are skipped. It returns whether it is there.
func (q *Queue) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	reply, err := q.Do(ctx, "SCHEDULES", "RESUME", name)
	return read(reply, err, truth)
}

// Schedules returns all schedules.
func (q *Queue) Schedules(ctx context.Context) ([]ScheduleRecord, error) {
	reply, err := q.Do(ctx, "SCHEDULES")
	return read(reply, err, each(scheduleRecord))
}

// Tick processes all due events. With Advance or To it moves the clock of a queue with ManualClock, and does all that
// falls due on the way. It returns how much of each kind.
func (q *Queue) Tick(ctx context.Context, move ...TickOption) (Info, error) {
	var words []string
	for _, one := range move {
		words = append(words, one.tickWords()...)
	}
	reply, err := q.Do(ctx, "TICK", words...)
	return read(reply, err, info)
}
