// A worker with sqs-consumer: worker_consumer.mjs ENDPOINT QUEUE FILE
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const [endpoint, queueUrl, file] = process.argv.slice(2);
const consumer = Consumer.create({
  queueUrl,
  batchSize: 5,
  waitTimeSeconds: 20,
  visibilityTimeout: 4,
  heartbeatInterval: 2,
  sqs: new SQSClient({ endpoint, region: "us-east-1" }),
  handleMessage: async (message) => {
    await setTimeout(500);
    appendFileSync(file, `${message.Body}\n`);
    return message;
  },
});
consumer.on("error", (error) => console.error(error));
consumer.start();
