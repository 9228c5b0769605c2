package bench

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
)

var (
	speedFile   = flag.String("speed.file", "", "`file` that BenchmarkSpeedTrace writes")
	speedBeside = flag.Int("speed.beside", 0, "busy loops beside BenchmarkSpeedTrace")
)

// Bins of a trace of the machine's speed, which stats' simulations read.
const (
	speedBins   = 30_000
	speedBinNs  = 2_000_000
	speedMostNs = 2_500_000 // of CPU time in a bin, as a byte
)

// BenchmarkSpeedTrace records how fast this machine works, in bins of 2 ms over 60 s: one thread
// does units of work (a hash of 2 KiB) and counts those of each bin, and the processor time that
// they took. It writes gzip of two bytes a bin: units by the most of any bin, times 255, then
// processor time in steps of 2.5 ms / 255. It is run by hand:
//
//	go test ./bench -run - -bench SpeedTrace -benchtime 1x -args -speed.file quiet.gz
func BenchmarkSpeedTrace(b *testing.B) {
	if *speedFile == "" {
		b.Skip("needs -args -speed.file FILE")
	}
	done := make(chan struct{})
	for range *speedBeside {
		go func() {
			for sum := [32]byte{}; ; sum = sha256.Sum256(sum[:]) {
				select {
				case <-done:
					return
				default:
				}
			}
		}()
	}
	runtime.GOMAXPROCS(*speedBeside + 2)
	time.Sleep(time.Second)
	units, times := recordSpeed(b)
	close(done)
	most := 0
	for _, n := range units {
		most = max(most, n)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for i := range units {
		pair := []byte{byte(units[i] * 255 / most), byte(min(255, times[i]*255/speedMostNs))}
		if _, err := w.Write(pair); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(*speedFile, out.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
}

// recordSpeed counts the units of work and the processor time of each bin.
func recordSpeed(b *testing.B) (units []int, times []int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	units, times = make([]int, speedBins), make([]int64, speedBins)
	work := make([]byte, 2<<10)
	began, before := clock.Mono(), threadTime(b)
	for {
		sum := sha256.Sum256(work)
		copy(work, sum[:])
		bin := (clock.Mono() - began) / speedBinNs
		if bin >= speedBins {
			return units, times
		}
		units[bin]++
		if units[bin] == 1 { // the first of a bin: the time since the last unit was in that bin
			now := threadTime(b)
			times[bin], before = now-before, now
		}
	}
}

func threadTime(b *testing.B) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return t.Nano()
}
