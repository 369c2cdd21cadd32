<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Transport\Receiver\KeepaliveReceiverInterface;

// Symfony has the interface since 7.2.
if (interface_exists(KeepaliveReceiverInterface::class)) {
    interface Keepalive extends KeepaliveReceiverInterface
    {
    }
} else {
    interface Keepalive
    {
        public function keepalive(Envelope $envelope, ?int $seconds = null): void;
    }
}
