// Program workers has a worker and a producer of each contender in Go: workers dq|bare|delayqueue send|work.
package main

import "os"

func main() {
	contenders := map[string]func(sends bool){"dq": worker, "bare": bare, "delayqueue": delayqueue}
	contenders[os.Args[1]](os.Args[2] == "send")
}
