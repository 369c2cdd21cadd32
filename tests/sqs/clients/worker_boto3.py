"""A worker with boto3: worker_boto3.py ENDPOINT QUEUE FILE"""

import sys
import time

import boto3

endpoint, queue, file = sys.argv[1:]
sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")
while True:
    answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=5, WaitTimeSeconds=20)
    for message in answer.get("Messages", []):
        time.sleep(0.1)
        with open(file, "a") as done:
            print(message["Body"], file=done)
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
