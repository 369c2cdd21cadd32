package dq

import (
	"fmt"
	"hash/crc32"
	"math/bits"
	"strconv"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// crc16 is that of Redis Cluster: CRC-16/XMODEM.
func crc16(text string) (crc uint16) {
	for i := 0; i < len(text); i++ {
		crc ^= uint16(text[i]) << 8
		for bit := 0; bit < 8; bit++ {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// tags returns the hash tag of each partition: of partition i the smallest number whose slot is in the i-th of equal parts
// of all slots.
func tags(partitions int) []string {
	found := make([]string, partitions)
	for n, missing := 0, partitions; missing > 0; n++ {
		tag := strconv.Itoa(n)
		i := int(crc16(tag)) % slots * partitions / slots
		if found[i] == "" {
			found[i] = tag
			missing--
		}
	}
	return found
}

// partitionOf returns the partition that a group belongs to.
func partitionOf(group string, partitions int) int {
	return int(uint64(crc32.ChecksumIEEE([]byte(group))) * uint64(partitions) >> 32)
}

func checkPartitions(partitions int) error {
	if partitions < 1 || partitions > slots || bits.OnesCount(uint(partitions)) != 1 {
		return fmt.Errorf("dq: a family has a power of two from 1 to %d partitions, not %d", slots, partitions)
	}
	return nil
}
