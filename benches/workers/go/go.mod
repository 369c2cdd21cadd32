// Built with redigo from Debian's package golang-github-gomodule-redigo-dev, as the tests of clients/go are.
module workers

go 1.19

require (
	dq v0.0.0
	github.com/gomodule/redigo v1.8.3
)

replace (
	dq => ../../../clients/go
	github.com/gomodule/redigo => /usr/share/gocode/src/github.com/gomodule/redigo
)
