package dq

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNil may be returned by a RedisCli instead of a null reply.
var ErrNil = errors.New("nil")

// ErrLeaseLost is the error of a call that needs the lease of a message that is over: another consumer may have it now.
var ErrLeaseLost = errors.New("dq: the lease of the message is over")

// The usual error replies. errors.Is(err, dq.ErrQueueFull) tells whether an error is one of them.
var (
	ErrQueueFull    = &ServerError{Code: "QUEUEFULL"}
	ErrQueueClosed  = &ServerError{Code: "QUEUECLOSED"}
	ErrWrongType    = &ServerError{Code: "WRONGTYPE"}
	ErrNoPermission = &ServerError{Code: "NOPERM"}
	ErrCondition    = &ServerError{Code: "CONDITION"} // of Effects
	ErrQueueExists  = &ServerError{Code: "ERR", Text: "ERR queue already exists"}
	ErrNoSuchQueue  = &ServerError{Code: "ERR", Text: "ERR no such queue"}
)

// ServerError is an error reply. Nothing has changed then.
type ServerError struct {
	// Code is the first word of the reply, such as ERR.
	Code string
	// Text is the whole reply. An error to compare with has none if its code says it all.
	Text string
}

func (e *ServerError) Error() string {
	if e.Text == "" {
		return e.Code
	}
	return e.Text
}

// Is reports whether the error has the code of target, and its text if it has one.
func (e *ServerError) Is(target error) bool {
	other, ok := target.(*ServerError)
	return ok && other.Code == e.Code && (other.Text == "" || other.Text == e.Text)
}

// ConnError is a failure to get a reply. Whether the command was run is unknown.
type ConnError struct {
	Err error
}

func (e *ConnError) Error() string { return "dq: no reply: " + e.Err.Error() }

// Unwrap returns the error of the client.
func (e *ConnError) Unwrap() error { return e.Err }

// ReplyError is a reply of another form than that of the command.
type ReplyError struct {
	Expected string
	Got      interface{}
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("dq: the reply has %T(%v) where %s was expected", e.Got, e.Got, e.Expected)
}

// The codes of error replies that pass: the server loads, the node is about to be another one, a script takes long, the disk
// is full, the replicas are away.
var passing = map[string]bool{
	"LOADING": true, "READONLY": true, "CLUSTERDOWN": true, "TRYAGAIN": true, "MASTERDOWN": true, "UNBLOCKED": true,
	"BUSY": true, "MISCONF": true, "NOREPLICAS": true,
}

// IsTransient reports whether another try can help: after a lost connection, while a server loads or refuses writes, during
// a failover.
func IsTransient(err error) bool {
	var reply *ServerError
	if errors.As(err, &reply) {
		return passing[reply.Code]
	}
	var lost *ConnError
	return errors.As(err, &lost)
}

// checked separates the returned values of a client: a reply, an error reply, or no reply.
func checked(reply interface{}, err error) (interface{}, error) {
	if err == nil {
		return reply, nil
	}
	if errors.Is(err, ErrNil) {
		return nil, nil
	}
	text := err.Error()
	code, _, found := strings.Cut(text, " ")
	if found && isCode(code) && !errors.Is(err, io.EOF) {
		return nil, &ServerError{Code: code, Text: text}
	}
	return nil, &ConnError{Err: err}
}

// isCode reports whether a word is the code of an error reply. The first word of any other error has small letters.
func isCode(word string) bool {
	return word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
