package dq

import (
	"math/big"
	"strconv"
	"time"
)

// read runs a function over a reply. The functions below panic with a *ReplyError if the reply has another form.
func read[T any](reply interface{}, err error, parse func(interface{}) T) (result T, failure error) {
	if err != nil {
		return result, err
	}
	defer func() {
		if caught := recover(); caught != nil {
			wrong, ok := caught.(*ReplyError)
			if !ok {
				panic(caught)
			}
			failure = wrong
		}
	}()
	return parse(reply), nil
}

func text(value interface{}) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return number(v)
	case *big.Int:
		// A SCORE of 2^63 and more, under RESP3.
		return v.String()
	}
	panic(&ReplyError{"a text", value})
}

func raw(value interface{}) []byte {
	switch v := value.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	panic(&ReplyError{"a text", value})
}

// integer reads a number. A null is 0.
func integer(value interface{}) int64 {
	switch v := value.(type) {
	case nil:
		return 0
	case int64:
		return v
	case int:
		return int64(v)
	case float64:
		return int64(v)
	case bool:
		if v {
			return 1
		}
		return 0
	}
	n, err := strconv.ParseInt(text(value), 10, 64)
	if err != nil {
		panic(&ReplyError{"an integer", value})
	}
	return n
}

func whole(value interface{}) int { return int(integer(value)) }

func truth(value interface{}) bool { return integer(value) == 1 }

func nothing(interface{}) struct{} { return struct{}{} }

// double reads a number that need not be whole. A null is nil.
func double(value interface{}) *float64 {
	switch v := value.(type) {
	case nil:
		return nil
	case float64:
		return &v
	}
	f, err := strconv.ParseFloat(text(value), 64)
	if err != nil {
		panic(&ReplyError{"a number", value})
	}
	return &f
}

// moment reads Unix ms. A null is the zero time.
func moment(value interface{}) time.Time {
	if value == nil {
		return time.Time{}
	}
	return time.UnixMilli(integer(value))
}

func list(value interface{}) []interface{} {
	if value == nil {
		return nil
	}
	if v, ok := value.([]interface{}); ok {
		return v
	}
	panic(&ReplyError{"an array", value})
}

// listOf returns an array of at least n elements.
func listOf(n int, value interface{}) []interface{} {
	elements := list(value)
	if len(elements) < n {
		panic(&ReplyError{"an array of " + count(n), value})
	}
	return elements
}

// fields reads a map, which is a flat array under RESP2.
func fields(value interface{}) map[string]interface{} {
	var result map[string]interface{}
	switch v := value.(type) {
	case map[string]interface{}:
		return v
	case map[interface{}]interface{}:
		result = make(map[string]interface{}, len(v))
		for name, one := range v {
			result[text(name)] = one
		}
	default:
		flat := list(value)
		result = make(map[string]interface{}, len(flat)/2)
		for i := 0; i+1 < len(flat); i += 2 {
			result[text(flat[i])] = flat[i+1]
		}
	}
	return result
}

func texts(value interface{}) []string {
	elements := list(value)
	result := make([]string, len(elements))
	for i, one := range elements {
		result[i] = text(one)
	}
	return result
}

func textMap(value interface{}) map[string]string {
	if value == nil {
		return nil
	}
	result := map[string]string{}
	for name, one := range fields(value) {
		result[name] = text(one)
	}
	return result
}

func each[T any](parse func(interface{}) T) func(interface{}) []T {
	return func(value interface{}) []T {
		elements := list(value)
		result := make([]T, len(elements))
		for i, one := range elements {
			result[i] = parse(one)
		}
		return result
	}
}

// orNil reads a reply that may be null.
func orNil[T any](parse func(interface{}) T) func(interface{}) *T {
	return func(value interface{}) *T {
		if value == nil {
			return nil
		}
		result := parse(value)
		return &result
	}
}
