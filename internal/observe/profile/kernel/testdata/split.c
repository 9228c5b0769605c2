// Spends its processor time, or its time asleep, three to one between two functions, by the
// kernel's own count, and says when, and what it has waited in each so far, in ns. System calls are made here, because the C library keeps no frame pointers, and
// the function that calls it is missing from its stacks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum { PART = 2000000 }; // ns

static long call(long number, long a, long b) {
	register long ret;
#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	ret = x0;
#else
#error "no way to call the kernel here"
#endif
	return ret;
}

static long now(int which) {
	struct timespec ts;
	if (call(SYS_clock_gettime, which, (long)&ts))
		exit(1);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void spin(long ns) {
	for (long end = now(CLOCK_THREAD_CPUTIME_ID) + ns; now(CLOCK_THREAD_CPUTIME_ID) < end;)
		for (volatile int i = 0; i < 10000; i++)
			;
}

static long waited[2];

static void rest(long ns, long *total) {
	long from = now(CLOCK_MONOTONIC);
	struct timespec ts = {0, ns};
	call(SYS_nanosleep, (long)&ts, 0);
	*total += now(CLOCK_MONOTONIC) - from;
}

__attribute__((noinline)) void spinThree(void) { spin(3 * PART); __asm__(""); }
__attribute__((noinline)) void spinOne(void) { spin(PART); __asm__(""); }
__attribute__((noinline)) void waitThree(void) { rest(3 * PART, &waited[0]); __asm__(""); }
__attribute__((noinline)) void waitOne(void) { rest(PART, &waited[1]); __asm__(""); }

int main(int argc, char **argv) {
	for (int waits = argc > 1 && !strcmp(argv[1], "wait");;) {
		if (waits) {
			waitThree();
			waitOne();
			printf("%ld %ld %ld\n", now(CLOCK_MONOTONIC), waited[0], waited[1]);
			if (fflush(stdout))
				return 1;
		} else {
			spinThree();
			spinOne();
		}
	}
}
