// A member of a group in Sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"members/lines"
)

type member struct {
	group  sarama.ConsumerGroup
	admin  sarama.ClusterAdmin
	name   string
	topics []string
	state  *lines.State
	stop   context.CancelFunc
	ended  chan struct{}

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	// The last that the library had to say of a commit; the session goes on whatever that is.
	failure error
}

func (member *member) Setup(session sarama.ConsumerGroupSession) error {
	member.mutex.Lock()
	defer member.mutex.Unlock()
	member.session = session
	member.state.Assign(session.Claims())
	return nil
}

func (member *member) Cleanup(session sarama.ConsumerGroupSession) error {
	member.state.Revoke(session.Claims())
	return nil
}

func (member *member) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	return nil
}

func (member *member) consume(whole context.Context) {
	defer close(member.ended)
	for whole.Err() == nil {
		failure := member.group.Consume(whole, member.topics, member)
		if errors.Is(failure, sarama.ErrFencedInstancedId) {
			member.state.Fail(failure)
			return
		}
	}
}

func (member *member) listen() {
	for failure := range member.group.Errors() {
		member.mutex.Lock()
		member.failure = failure
		member.mutex.Unlock()
	}
}

// Commit marks, commits, and asks the broker what became of it: the library's own commit returns nothing.
func (member *member) Commit(offsets map[lines.Place]int64) error {
	member.mutex.Lock()
	session := member.session
	member.mutex.Unlock()
	places := []lines.Place{}
	for place, offset := range offsets {
		session.MarkOffset(place.Topic, place.Partition, offset, "")
		places = append(places, place)
	}
	session.Commit()
	found, failure := member.Committed(places)
	if failure != nil {
		return failure
	}
	for place, offset := range offsets {
		if found[place] != offset {
			member.mutex.Lock()
			defer member.mutex.Unlock()
			return fmt.Errorf("commit failed: %d is at %d: %v", offset, found[place], member.failure)
		}
	}
	return nil
}

func (member *member) Committed(places []lines.Place) (map[lines.Place]int64, error) {
	asked := map[string][]int32{}
	for _, place := range places {
		asked[place.Topic] = append(asked[place.Topic], place.Partition)
	}
	found, failure := member.admin.ListConsumerGroupOffsets(member.name, asked)
	offsets := map[lines.Place]int64{}
	if failure != nil {
		return offsets, failure
	}
	for _, place := range places {
		if one := found.GetBlock(place.Topic, place.Partition); one != nil && one.Offset >= 0 {
			offsets[place] = one.Offset
		}
	}
	return offsets, nil
}

func (member *member) Close() error {
	member.stop()
	<-member.ended
	failure := member.group.Close()
	if errors.Is(failure, sarama.ErrFencedInstancedId) {
		failure = nil
	}
	return errors.Join(failure, member.admin.Close())
}

func main() {
	address, options := lines.Given()
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = options.ClientID
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = time.Duration(options.SessionMS) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = time.Duration(options.HeartbeatMS) * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if options.Instance != nil {
		config.Consumer.Group.InstanceId = *options.Instance
	}
	brokers := []string{address}
	group, failure := sarama.NewConsumerGroup(brokers, options.Group, config)
	lines.Must(failure)
	admin, failure := sarama.NewClusterAdmin(brokers, config)
	lines.Must(failure)
	whole, stop := context.WithCancel(context.Background())
	made := &member{
		group: group, admin: admin, name: options.Group, topics: options.Topics, state: &lines.State{},
		stop: stop, ended: make(chan struct{}),
	}
	go made.listen()
	go made.consume(whole)
	lines.Serve(made, made.state)
}
