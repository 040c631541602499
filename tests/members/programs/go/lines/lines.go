// Package lines answers calls that come in as lines of JSON.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
)

// Options are what a member is started with.
type Options struct {
	Group       string   `json:"group"`
	Topics      []string `json:"topics"`
	ClientID    string   `json:"client_id"`
	Instance    *string  `json:"instance"`
	Assignor    string   `json:"assignor"`
	SessionMS   int64    `json:"session_ms"`
	HeartbeatMS int64    `json:"heartbeat_ms"`
}

// Place is a topic's partition.
type Place struct {
	Topic     string
	Partition int32
}

// Member is what a client library has to be able to do.
type Member interface {
	Commit(offsets map[Place]int64) error
	// Committed leaves out what has no offset.
	Committed(places []Place) (map[Place]int64, error)
	Close() error
}

// State is how a member is; listeners of the library write it from goroutines of their own.
type State struct {
	mutex       sync.Mutex
	owned       map[Place]bool
	assignments int
	failure     error
}

// Assign counts an assignment, and adds to what the member owns.
func (state *State) Assign(topics map[string][]int32) {
	state.mutex.Lock()
	defer state.mutex.Unlock()
	state.assignments++
	if state.owned == nil {
		state.owned = map[Place]bool{}
	}
	for topic, partitions := range topics {
		for _, partition := range partitions {
			state.owned[Place{topic, partition}] = true
		}
	}
}

// Revoke takes away from what the member owns.
func (state *State) Revoke(topics map[string][]int32) {
	state.mutex.Lock()
	defer state.mutex.Unlock()
	for topic, partitions := range topics {
		for _, partition := range partitions {
			delete(state.owned, Place{topic, partition})
		}
	}
}

// Fail notes what ended the member.
func (state *State) Fail(failure error) {
	state.mutex.Lock()
	defer state.mutex.Unlock()
	state.failure = failure
}

// Failure returns what ended the member, nil if nothing has.
func (state *State) Failure() error {
	state.mutex.Lock()
	defer state.mutex.Unlock()
	return state.failure
}

func (state *State) look() any {
	state.mutex.Lock()
	defer state.mutex.Unlock()
	rows := [][]any{}
	for place := range state.owned {
		rows = append(rows, []any{place.Topic, place.Partition})
	}
	sort.Slice(rows, func(left, right int) bool { return fmt.Sprint(rows[left]) < fmt.Sprint(rows[right]) })
	var words any
	if state.failure != nil {
		words = state.failure.Error()
	}
	return map[string]any{"owned": rows, "assignments": state.assignments, "error": words}
}

// Given returns the address and the options of the command line.
func Given() (string, Options) {
	var options Options
	Must(json.Unmarshal([]byte(os.Args[2]), &options))
	return os.Args[1], options
}

// Must ends the program on an error that is nobody's subject.
func Must(failure error) {
	if failure != nil {
		fmt.Fprintln(os.Stderr, failure)
		os.Exit(1)
	}
}

// Serve answers calls until the input ends; then the member leaves.
func Serve(member Member, state *State) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<24)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		result, failure := answer(member, state, input.Bytes())
		if failure != nil {
			Must(output.Encode(map[string]any{"error": failure.Error()}))
		} else {
			Must(output.Encode(map[string]any{"result": result}))
		}
	}
	Must(member.Close())
}

func answer(member Member, state *State, line []byte) (any, error) {
	var call []json.RawMessage
	Must(json.Unmarshal(line, &call))
	var method string
	Must(json.Unmarshal(call[0], &method))
	if method == "look" {
		return state.look(), nil
	}
	var arguments [][][]any
	Must(json.Unmarshal(call[1], &arguments))
	offsets := map[Place]int64{}
	places := []Place{}
	for _, row := range arguments[0] {
		place := Place{row[0].(string), int32(row[1].(float64))}
		places = append(places, place)
		if method == "commit" {
			offsets[place] = int64(row[2].(float64))
		}
	}
	if method == "commit" {
		return nil, member.Commit(offsets)
	}
	found, failure := member.Committed(places)
	rows := [][]any{}
	for _, place := range places {
		var offset any
		if known, ok := found[place]; ok {
			offset = known
		}
		rows = append(rows, []any{place.Topic, place.Partition, offset})
	}
	return rows, failure
}
