//go:build goredis

package delayqueue

import (
	"github.com/redis/go-redis/v9"

	"dq/goredis"
)

// NewQueue returns the queue of a name, see NewQueue0.
func NewQueue(name string, cli *redis.Client, opts ...interface{}) *DelayQueue {
	return NewQueue0(name, goredis.New(cli), opts...)
}

// NewQueueOnCluster returns the queue of a name on a cluster, with UseHashTagKey.
func NewQueueOnCluster(name string, cli *redis.ClusterClient, opts ...interface{}) *DelayQueue {
	return NewQueue0(name, goredis.NewCluster(cli), append(opts, UseHashTagKey())...)
}

// NewPublisher returns a Publisher for the queue of a name.
func NewPublisher(name string, cli *redis.Client, opts ...interface{}) *Publisher {
	return NewPublisher0(name, goredis.New(cli), opts...)
}

// NewMonitor returns a Monitor of the queue of a name.
func NewMonitor(name string, cli *redis.Client, opts ...interface{}) *Monitor {
	return NewMonitor0(name, goredis.New(cli), opts...)
}

// NewMonitorOnCluster returns a Monitor of the queue of a name on a cluster, with UseHashTagKey: that of NewQueueOnCluster.
func NewMonitorOnCluster(name string, cli *redis.ClusterClient, opts ...interface{}) *Monitor {
	return NewMonitor0(name, goredis.NewCluster(cli), append(opts, UseHashTagKey())...)
}
