// A worker with @aws-sdk/client-sqs: worker_sdk.mjs ENDPOINT QUEUE FILE
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";

const [endpoint, QueueUrl, file] = process.argv.slice(2);
const sqs = new SQSClient({ endpoint, region: "us-east-1" });
for (;;) {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 5, WaitTimeSeconds: 20 }),
  );
  for (const message of Messages) {
    await setTimeout(100);
    appendFileSync(file, `${message.Body}\n`);
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));
  }
}
