// Submits an experiment, watches it until it ends, and prints its comparison.
// Usage: submit SERVER EXPERIMENT.yaml, where SERVER is unix:SOCKET or FILE.join. To build it, see
// docs/howto/another-language.md.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	ablate "ablate/v1" // generated from the .proto files
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	channel, ctx := connect(os.Args[1])
	text, err := os.ReadFile(os.Args[2])
	check(err)
	request := &ablate.CreateExperimentRequest{Text: string(text)}
	request.RequestId = fmt.Sprint("go-", time.Now().UnixNano())
	experiments := ablate.NewExperimentsClient(channel)
	created, err := experiments.CreateExperiment(ctx, request)
	check(err)
	name := created.Experiment.Name
	stream, err := experiments.WatchExperiment(ctx, &ablate.WatchExperimentRequest{Name: name})
	check(err)
	for {
		event, err := stream.Recv()
		if err == io.EOF { // the experiment has ended
			break
		}
		check(err)
		fmt.Println(event.Cell, event.State, event.Step, "of", event.Steps, event.Last["eval/loss"])
	}
	comparison, err := ablate.NewMetricsClient(channel).Compare(ctx, &ablate.CompareRequest{Experiment: name})
	check(err)
	fmt.Print(comparison.Text)
}

// connect returns a channel, and a context that sends the token of a join file with each call.
func connect(server string) (*grpc.ClientConn, context.Context) {
	ctx, security := context.Background(), grpc.WithInsecure()
	if strings.HasSuffix(server, ".join") {
		join, authority := &ablate.JoinFile{}, x509.NewCertPool()
		text, err := os.ReadFile(server)
		check(err)
		check(protojson.Unmarshal(text, join))
		authority.AppendCertsFromPEM([]byte(join.CertificateAuthority))
		security = grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(authority, join.ServerName))
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+join.Token)
		server = join.Address
	}
	channel, err := grpc.Dial(server, security)
	check(err)
	return channel, ctx
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
