<?php
// A worker with async-aws/sqs: worker.php ENDPOINT QUEUE FILE

require 'AsyncAws/Sqs/autoload.php';

use AsyncAws\Sqs\SqsClient;

[, $endpoint, $queue, $file] = $argv;
$sqs = new SqsClient(['endpoint' => $endpoint, 'region' => 'us-east-1']);
while (true) {
    $answer = $sqs->receiveMessage(['QueueUrl' => $queue, 'MaxNumberOfMessages' => 5, 'WaitTimeSeconds' => 20]);
    foreach ($answer->getMessages() as $message) {
        usleep(100_000);
        file_put_contents($file, $message->getBody() . "\n", FILE_APPEND);
        $sqs->deleteMessage(['QueueUrl' => $queue, 'ReceiptHandle' => $message->getReceiptHandle()])->resolve();
    }
}
