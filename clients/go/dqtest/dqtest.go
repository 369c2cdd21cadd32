// Package dqtest starts a server with dq for a test: in memory, on a free port of this machine.
//
// The server is the program dq that the variable DQ_CLI names, or the one on PATH. It ends with the process of the
// tests, even if that is killed.
package dqtest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Server starts a server that ends with the test. It returns its URL. The options are more options of `dq server`.
func Server(t testing.TB, options ...string) string {
	t.Helper()
	url, stop, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// Start starts a server, for a TestMain: all tests of a package can share it. It returns its URL, and what stops it.
func Start(options ...string) (url string, stop func(), err error) {
	program := os.Getenv("DQ_CLI")
	if program == "" {
		program = "dq"
	}
	var said bytes.Buffer
	command := exec.Command(program, append([]string{"server", "--ephemeral"}, options...)...)
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, fmt.Errorf("tests with dq need the program dq, on PATH or named by DQ_CLI: %w", err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line == "" {
		err := command.Wait()
		return "", nil, fmt.Errorf("%s starts no server: %v: %s", program, err, strings.TrimSpace(said.String()))
	}
	stop = func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}
	return strings.TrimSpace(line), stop, nil
}
