package pace_test

import (
	"fmt"
	"log"
	"time"

	"prony.example/load/pace"
)

// Arrivals are pure functions: the same schedule and seed give the same moments everywhere.
func ExampleSchedule_Process() {
	s := pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(100)}
	p, err := s.Process(42)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		fmt.Println(time.Duration(p.Next()))
	}
	s.Arrivals = pace.Poisson
	one, _ := s.Process(42)
	two, _ := s.Process(42)
	other, _ := s.Process(43)
	second := int64(time.Second)
	fmt.Println(pace.Hash(one, second) == pace.Hash(two, second))
	one, _ = s.Process(42)
	fmt.Println(pace.Hash(one, second) == pace.Hash(other, second))
	// Output:
	// 0s
	// 10ms
	// 20ms
	// true
	// false
}

// A rate that changes: it rises from 0 to 200 per second within two seconds and stays there. The
// first second has the area below its part of the ramp, 50, and the second three times as many.
func ExampleParse() {
	profile, err := pace.Parse("ramp 0..200 in 2s")
	if err != nil {
		log.Fatal(err)
	}
	s := pace.Schedule{Arrivals: pace.Constant, Rate: profile}
	for second := range int64(3) {
		p, err := s.Process(1)
		if err != nil {
			log.Fatal(err)
		}
		from := second * int64(time.Second)
		fmt.Println(pace.Count(p, from, from+int64(time.Second)))
	}
	// Output:
	// 50
	// 150
	// 200
}

// Each of several threads sends its share, and together they send everything once.
func ExampleShare() {
	s := pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(1000)}
	for thread := range 2 {
		p, err := s.Process(1)
		if err != nil {
			log.Fatal(err)
		}
		mine := pace.Share(p, thread, 2)
		fmt.Println(time.Duration(mine.Next()), time.Duration(mine.Next()))
	}
	// Output:
	// 0s 2ms
	// 1ms 3ms
}
