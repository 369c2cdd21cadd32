<?php

/*
 * The parts of think-queue 3.0 that the driver uses, by their signatures. Debian has no package of it.
 */

namespace think {
    class App
    {
    }
}

namespace think\queue {
    abstract class Connector
    {
        protected $app;
        protected $connection;

        abstract public function size($queue);

        abstract public function push($job, $data = '', $queue = null);

        abstract public function pushRaw($payload, $queue = null, array $options = []);

        abstract public function later($delay, $job, $data = '', $queue = null);

        abstract public function pop($queue = null);

        protected function createPayload($job, $data = '')
        {
            return json_encode($this->createPayloadArray($job, $data));
        }

        protected function createPayloadArray($job, $data = '')
        {
            return ['job' => $job, 'maxTries' => null, 'timeout' => null, 'data' => $data];
        }

        public function setApp(\think\App $app)
        {
            $this->app = $app;
            return $this;
        }

        public function setConnection($name)
        {
            $this->connection = $name;
            return $this;
        }
    }

    abstract class Job
    {
        protected $app;
        protected $queue;
        protected $connection;
        protected $deleted = false;
        protected $released = false;

        public function payload($name = null, $default = null)
        {
            $payload = json_decode($this->getRawBody(), true);
            return $name === null ? $payload : $payload[$name] ?? $default;
        }

        public function delete()
        {
            $this->deleted = true;
        }

        public function release($delay = 0)
        {
            $this->released = true;
        }

        public function isDeleted()
        {
            return $this->deleted;
        }

        public function isReleased()
        {
            return $this->released;
        }

        public function getQueue()
        {
            return $this->queue;
        }

        abstract public function getJobId();

        abstract public function attempts();

        abstract public function getRawBody();
    }
}
