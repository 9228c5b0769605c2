//go:build ignore

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel lends bpf_get_stack to programs under a licence that goes with its own, and no other.

// Counts the stacks of some processes in the kernel, so that nothing has to be carried out of it
// while they are under load. Two programs, of which one is loaded at a time:
//
//	on_clock   at every tick of a perf event, on_switch whenever a thread leaves a processor or
//	           comes back to one (then the time between is what counts).
//
// A stack's key is a hash of 64 bits over its addresses rather than BPF_MAP_TYPE_STACK_TRACE's, that
// takes two stacks of one bucket for one or drops the second.

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define DEPTH 127 // frames of each kind, kernel.perf_event_max_stack as it comes
#define STACKS 8192
#define THREADS 16384
#define PROCESSES 1024

struct stack {
	__u64 seen;
	__u64 ns;
	__u32 tgid;
	__u32 user; // frames
	__u32 kernel;
	__u32 unused;
	__u64 ips[2 * DEPTH]; // innermost first: user's, from DEPTH on the kernel's
};

struct off {
	__u64 since;
	__u64 key;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROCESSES);
	__type(key, __u32);
	__type(value, __u8);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, __u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS);
	__type(key, __u32);
	__type(value, struct off);
} away SEC(".maps");

// lost counts by reason: 0 the map of stacks is full, 1 the map of threads is full.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

const volatile __u64 least = 0; // ns off the processor, to count

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

static __always_inline void lose(__u32 why) {
	__u64 *n = bpf_map_lookup_elem(&lost, &why);
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline __u64 mix(__u64 h, __u64 v) {
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

// find returns the entry of the current thread's stack and its key, 0: there is no room.
static __always_inline struct stack *find(void *ctx, __u32 tgid, __u64 *key) {
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return 0;
	long user = bpf_get_stack(ctx, s->ips, DEPTH * sizeof(__u64), BPF_F_USER_STACK);
	long kernel = bpf_get_stack(ctx, s->ips + DEPTH, DEPTH * sizeof(__u64), 0);
	s->seen = 0;
	s->ns = 0;
	s->tgid = tgid;
	s->user = user < 0 ? 0 : user / sizeof(__u64);
	s->kernel = kernel < 0 ? 0 : kernel / sizeof(__u64);
	__u64 h = mix(tgid, ((__u64)s->user << 32) | s->kernel);
	for (int i = 0; i < DEPTH && i < s->user; i++)
		h = mix(h, s->ips[i]);
	for (int i = 0; i < DEPTH && i < s->kernel; i++)
		h = mix(h, s->ips[DEPTH + i]);
	*key = h;
	struct stack *known = bpf_map_lookup_elem(&stacks, key);
	if (known)
		return known;
	bpf_map_update_elem(&stacks, key, s, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&stacks, key);
	if (!known)
		lose(0);
	return known;
}

SEC("perf_event")
int on_clock(void *ctx) {
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (!bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	__u64 key = 0;
	struct stack *s = find(ctx, tgid, &key);
	if (s)
		__sync_fetch_and_add(&s->seen, 1);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next) {
	__u64 now = bpf_ktime_get_ns();
	__u32 thread = next->pid;
	struct off *off = bpf_map_lookup_elem(&away, &thread);
	if (off) {
		__u64 ns = now - off->since;
		struct stack *s = ns < least ? 0 : bpf_map_lookup_elem(&stacks, &off->key);
		if (s) {
			__sync_fetch_and_add(&s->seen, 1);
			__sync_fetch_and_add(&s->ns, ns);
		}
		bpf_map_delete_elem(&away, &thread);
	}
	__u64 id = bpf_get_current_pid_tgid(); // still the one that leaves
	__u32 tgid = id >> 32;
	if (!bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	struct off leaving = {.since = now};
	if (!find(ctx, tgid, &leaving.key))
		return 0;
	thread = id;
	if (bpf_map_update_elem(&away, &thread, &leaving, BPF_ANY))
		lose(1);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
