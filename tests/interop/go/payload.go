// SPDX-License-Identifier: Apache-2.0

package main

import "encoding/binary"

// The pseudo-random payloads of echo.proto.

const (
	poolBytes  = 1114112
	maxPayload = 1048576
)

var pool = makePool()

func makePool() []byte {
	made := make([]byte, poolBytes)
	word := uint32(2463534242)
	for at := 0; at < poolBytes; at += 4 {
		word ^= word << 13
		word ^= word >> 17
		word ^= word << 5
		binary.LittleEndian.PutUint32(made[at:], word)
	}
	return made
}

func payload(seed, size uint32) []byte {
	offset := seed * 2654435761 >> 16
	return pool[offset : offset+size]
}
