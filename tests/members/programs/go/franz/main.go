// A member of a group in franz-go.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"members/lines"
)

type member struct {
	client *kgo.Client
	group  string
	state  *lines.State
}

// OnGroupManageError is called by the library when it leaves its group for an error, and before it tries anew.
func (member *member) OnGroupManageError(failure error) {
	if errors.Is(failure, kerr.FencedInstanceID) {
		member.state.Fail(failure)
	}
}

func (member *member) poll() {
	for !member.client.PollFetches(context.Background()).IsClientClosed() {
	}
}

func (member *member) Commit(offsets map[lines.Place]int64) error {
	topics := map[string]map[int32]kgo.EpochOffset{}
	for place, offset := range offsets {
		if topics[place.Topic] == nil {
			topics[place.Topic] = map[int32]kgo.EpochOffset{}
		}
		topics[place.Topic][place.Partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var failure error
	member.client.CommitOffsetsSync(context.Background(), topics,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, failed error) {
			failure = failed
			if failed != nil {
				return
			}
			for _, topic := range response.Topics {
				for _, row := range topic.Partitions {
					if code := kerr.ErrorForCode(row.ErrorCode); code != nil {
						failure = code
					}
				}
			}
		})
	return failure
}

func (member *member) Committed(places []lines.Place) (map[lines.Place]int64, error) {
	found, failure := kadm.NewClient(member.client).FetchOffsets(context.Background(), member.group)
	offsets := map[lines.Place]int64{}
	for _, place := range places {
		if one, ok := found.Lookup(place.Topic, place.Partition); ok && one.At >= 0 {
			offsets[place] = one.At
		}
	}
	return offsets, failure
}

func (member *member) Close() error {
	member.client.Close()
	return nil
}

func main() {
	address, options := lines.Given()
	state := &lines.State{}
	made := &member{group: options.Group, state: state}
	balancer := kgo.RangeBalancer()
	if options.Assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	settings := []kgo.Opt{
		kgo.SeedBrokers(address),
		kgo.ClientID(options.ClientID),
		kgo.ConsumerGroup(options.Group),
		kgo.ConsumeTopics(options.Topics...),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(time.Duration(options.SessionMS) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(options.HeartbeatMS) * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.WithHooks(made),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { state.Assign(topics) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { state.Revoke(topics) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { state.Revoke(topics) }),
	}
	if options.Instance != nil {
		settings = append(settings, kgo.InstanceID(*options.Instance))
	}
	client, failure := kgo.NewClient(settings...)
	lines.Must(failure)
	made.client = client
	go made.poll()
	lines.Serve(made, state)
}
