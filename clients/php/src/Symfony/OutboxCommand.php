<?php

declare(strict_types=1);

namespace Dq\Symfony;

use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/** `bin/console dq:outbox`: sends what the outbox has until SIGTERM or SIGINT, and ends with 0 then. */
final class OutboxCommand extends Command
{
    /** @param TransportInterface $transport one with the option `outbox`. It sends the rows of others, too */
    public function __construct(private TransportInterface $transport)
    {
        parent::__construct('dq:outbox');
        $this->setDescription('Sends the messages of the outbox of the dq transports');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $outbox = $this->transport instanceof DqTransport ? $this->transport->outbox : null;
        if ($outbox === null) {
            $output->writeln('The transport is no dq transport with the option outbox.');
            return self::INVALID;
        }
        $outbox->run();
        return self::SUCCESS;
    }
}
