// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const listedFailures = 50

// The fields of Report in echo.proto.
type report struct {
	Rpcs         int       `json:"rpcs"`
	Corrupt      int       `json:"corrupt"`
	SplitStreams int       `json:"split_streams"`
	Failed       int       `json:"failed"`
	P50Ms        float64   `json:"p50_ms"`
	P99Ms        float64   `json:"p99_ms"`
	MaxMs        float64   `json:"max_ms"`
	Failures     []failure `json:"failures"`
	Landings     []landing `json:"landings"`
}

type failure struct {
	Connection int     `json:"connection"`
	AtS        float64 `json:"at_s"`
	TookMs     float64 `json:"took_ms"`
	Code       string  `json:"code"`
	Detail     string  `json:"detail"`
}

type landing struct {
	Connection int     `json:"connection"`
	AtS        float64 `json:"at_s"`
	Server     string  `json:"server"`
}

// One RPC as its caller saw it.
type outcome struct {
	connection int
	begun      time.Time
	err        error
	server     string // that began to answer
	corrupt    bool
	split      bool
}

type recorder struct {
	mutex  sync.Mutex
	start  time.Time
	tookMs []float64
	last   map[int]outcome
	report report
}

func newRecorder() *recorder {
	empty := report{Failures: []failure{}, Landings: []landing{}}
	return &recorder{start: time.Now(), last: map[int]outcome{}, report: empty}
}

func milliseconds(duration time.Duration) float64 { return duration.Seconds() * 1000 }

func (r *recorder) add(o outcome) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	took := milliseconds(time.Since(o.begun))
	r.tookMs = append(r.tookMs, took)
	r.report.Rpcs++
	if o.corrupt || status.Code(o.err) == codes.DataLoss {
		r.report.Corrupt++
	}
	if o.split {
		r.report.SplitStreams++
	}
	at := o.begun.Sub(r.start).Seconds()
	if o.err != nil {
		r.report.Failed++
	}
	if o.err != nil && len(r.report.Failures) < listedFailures {
		r.report.Failures = append(r.report.Failures,
			failure{o.connection, at, took, status.Code(o.err).String(), status.Convert(o.err).Message()})
	}
	last := r.last[o.connection]
	// A long RPC ends after shorter ones that were begun later elsewhere.
	if o.server == "" || o.begun.Before(last.begun) {
		return
	}
	r.last[o.connection] = o
	if o.server != last.server {
		r.report.Landings = append(r.report.Landings, landing{o.connection, at, o.server})
	}
}

func (r *recorder) finish() report {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sort.Float64s(r.tookMs)
	if last := len(r.tookMs) - 1; last >= 0 {
		r.report.P50Ms = r.tookMs[last/2]
		r.report.P99Ms = r.tookMs[last*99/100]
		r.report.MaxMs = r.tookMs[last]
	}
	return r.report
}
