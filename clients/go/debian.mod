// What the tests are built with: redigo from Debian's package golang-github-gomodule-redigo-dev, and in place of go-redis
// the few declarations of it that goredis/ uses. So nothing is downloaded: go test -modfile=debian.mod ./...
module dq

go 1.19

require (
	github.com/gomodule/redigo v1.8.3
	github.com/redis/go-redis/v9 v9.0.5
)

replace (
	github.com/gomodule/redigo => /usr/share/gocode/src/github.com/gomodule/redigo
	github.com/redis/go-redis/v9 => ./testdata/go-redis
)
