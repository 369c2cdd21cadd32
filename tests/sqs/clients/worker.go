// A worker with Go's SDK, version 2: worker ENDPOINT QUEUE FILE
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
	endpoint, queue, file := os.Args[1], os.Args[2], os.Args[3]
	client := sqs.New(sqs.Options{
		Region:           "us-east-1",
		Credentials:      credentials.NewStaticCredentialsProvider("key", "secret", ""),
		EndpointResolver: sqs.EndpointResolverFromURL(endpoint),
	})
	ctx := context.Background()
	for {
		answer, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queue, MaxNumberOfMessages: 5, WaitTimeSeconds: 20,
		})
		if err != nil {
			log.Fatal(err)
		}
		for _, message := range answer.Messages {
			time.Sleep(100 * time.Millisecond)
			done, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Fprintln(done, aws.ToString(message.Body))
			done.Close()
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{
				QueueUrl: &queue, ReceiptHandle: message.ReceiptHandle,
			}); err != nil {
				log.Fatal(err)
			}
		}
	}
}
