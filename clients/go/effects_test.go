package dq_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"dq"
)

// apply settles a message by hand, with effects.
func apply(t *testing.T, q *dq.Queue, known map[string]string, one step) {
	receipt, err := strconv.ParseInt(filled(one.Receipt, known), 10, 64)
	must(t, err)
	effects := new(dq.Effects)
	collect(effects, one.Effects, known)
	var returned interface{}
	switch one.Apply {
	case "ack":
		var acked int
		acked, err = q.Ack(ctx, []int64{receipt}, effects)
		returned = float64(acked)
	case "fetch":
		var messages []*dq.Message
		messages, err = q.Fetch(ctx, dq.Acking(receipt), effects)
		ids := []interface{}{}
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
		returned = ids
	case "ack_send":
		var ids []string
		ids, err = q.AckSend(ctx, receipt, dq.Next{Payload: []byte(one.Next[1]), Options: []dq.SendOption{dq.ID(one.Next[0])}}, effects)
		if errors.Is(err, dq.ErrLeaseLost) {
			err = nil
		} else if err == nil {
			returned = []interface{}{ids[0]}
		}
	}
	var refused *dq.ServerError
	if one.Error != nil {
		if !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, *one.Error) {
			t.Fatalf("%v: %v", one, err)
		}
		return
	}
	must(t, err)
	if !reflect.DeepEqual(returned, one.Returns) || (effects.Applied == nil) != (one.Applied == nil) {
		t.Fatalf("%v: %v, and %v was applied", one, returned, effects.Applied)
	}
	if effects.Applied != nil && !matches(one.Applied, effects.Applied, known) {
		t.Fatalf("%v was applied, not %v", effects.Applied, one.Applied)
	}
}

func TestEffectsOfAHandlerMayBeAmongWhatFollows(t *testing.T) {
	q, cli := newQueue(t), connect(t)
	send(t, q, "x", dq.ID("a"))
	stop := running(t, &dq.Worker{Queue: q, Block: 50 * time.Millisecond, Handler: func(ctx context.Context, m *dq.Message) error {
		m.Effects().IncrBy(q.Key()+":n", 1)
		m.Follow(new(dq.Effects).IncrBy(q.Key()+":m", 2).IfMissing(q.Key() + ":m"))
		return nil
	}})
	emptied(t, q)
	must(t, stop())
	for key, want := range map[string]string{":n": "1", ":m": "2"} {
		value, err := cli.Do("GET", q.Key()+key)
		must(t, err)
		equal(t, key, text(value), want)
	}
}

// collect adds effects, each an array of its name and its arguments, by the methods of these names.
func collect(into *dq.Effects, given []interface{}, known map[string]string) {
	for _, one := range given {
		words := append([]interface{}{}, one.([]interface{})...)
		label, words := strings.ReplaceAll(words[0].(string), "_", ""), words[1:]
		if strings.HasSuffix(label, "incrby") && len(words) < map[string]int{"incrby": 2, "hincrby": 3}[label] {
			words = append(words, 1.0)
		}
		if last, ok := words[len(words)-1].(map[string]interface{}); ok && len(words) == 3 {
			words = words[:2]
			if span, ok := last["px"]; ok {
				label, words = "setfor", append([]interface{}{span}, words...)
			} else {
				label, words = "xaddto", append([]interface{}{last["maxlen"]}, words...)
			}
		}
		if fields, ok := words[len(words)-1].(map[string]interface{}); ok {
			words = words[:len(words)-1]
			for field, value := range fields {
				words = append(words, field, value)
			}
		}
		target, types := reflect.ValueOf(into), reflect.TypeOf(into)
		for i := 0; i < types.NumMethod(); i++ {
			if strings.EqualFold(types.Method(i).Name, label) {
				target = target.Method(i)
			}
		}
		var args []reflect.Value
		for i, word := range words {
			value := reflect.ValueOf(filled(text(word), known))
			if i < target.Type().NumIn() && target.Type().In(i).Kind() != reflect.String && target.Type().In(i).Kind() != reflect.Slice {
				value = reflect.ValueOf(word).Convert(target.Type().In(i))
				if span, ok := value.Interface().(time.Duration); ok {
					value = reflect.ValueOf(span * time.Millisecond)
				}
			}
			args = append(args, value)
		}
		target.Call(args)
	}
}
