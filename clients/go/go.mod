module dq

go 1.19

// The adapter in redigo/. 1.8.3 is Debian's version; newer ones work too.
//
// The adapter in goredis/ is only built with the tag goredis, and the program that uses it names its go-redis.
require github.com/gomodule/redigo v1.8.3
