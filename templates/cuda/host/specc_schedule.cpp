// Blocks as a loop, threads as fibers: they change over at barriers and in warp operations, in an order drawn from a seed.
#include <dlfcn.h>
#include <cxxabi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <utility>

#include "specc_runtime.h"

#if !defined(__x86_64__)
#define SPECC_UCONTEXT 1
#endif
#ifdef SPECC_UCONTEXT
#include <ucontext.h>
#endif

namespace specc_host {

Launch now;
Thread* current = nullptr;
std::string failure;

namespace {

constexpr size_t STACK = 256 * 1024, POISONED = 32 * 1024;
constexpr unsigned MOST_THREADS = 1024;

std::vector<Thread*> pool;
Thread scheduler;
uint64_t seed = 0;
std::vector<uint32_t> chosen;
bool have_chosen = false;
uint64_t slow_blocks = 0;
void (*on_launch)(const char* kernel, const uint32_t* shape) = nullptr;
void (*on_plan)(const char* kernel, const uint32_t* shape, const Arguments* arguments) = nullptr;

#ifdef SPECC_UCONTEXT
void change(Thread& from, Thread& to) {
    swapcontext(static_cast<ucontext_t*>(from.stack_pointer), static_cast<ucontext_t*>(to.stack_pointer));
}
#else
extern "C" void specc_change(void** from, void* to);
asm(R"(
.text
.type specc_change, @function
specc_change:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size specc_change, . - specc_change
)");
void change(Thread& from, Thread& to) { specc_change(&from.stack_pointer, to.stack_pointer); }
#endif

void body() {
    now.invoke(now.call);
    current->state = State::left;
    leave_fiber();
    abort();
}

/// A fiber at its start; its stack holds NaN, so that local arrays that were never set are not those of another thread.
void prepare(Thread& t) {
    memset(t.stack_high - POISONED, 0xff, POISONED);
#ifdef SPECC_UCONTEXT
    auto* context = static_cast<ucontext_t*>(t.stack_pointer);
    if (!context) t.stack_pointer = context = new ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = t.stack_low;
    context->uc_stack.ss_size = STACK;
    context->uc_link = nullptr;
    makecontext(context, body, 0);
#else
    auto* top = reinterpret_cast<void**>(t.stack_high) - 3;  // as after a call: 8 bytes off a multiple of 16
    *--top = reinterpret_cast<void*>(body);
    for (int n = 0; n < 6; ++n) *--top = nullptr;
    t.stack_pointer = top;
#endif
}

Thread* make_thread() {
    auto* t = new Thread;
    void* stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
    t->stack_low = static_cast<char*>(stack);
    t->stack_high = t->stack_low + STACK;
    return t;
}

template <typename T>
void shuffle_order(std::vector<T>& order) {
    for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[draw() % n]);
}

unsigned alive() {
    unsigned count = 0;
    for (Thread* t : now.threads) count += t->state != State::left;
    return count;
}

unsigned waiting() {
    unsigned count = 0;
    for (Thread* t : now.threads) count += t->state == State::at_barrier;
    return count;
}

/// Nobody can go on: says who waits where.
void report_stuck() {
    const Thread *warp = nullptr, *block = nullptr, *gone = nullptr;
    for (const Thread* t : now.threads) {
        if (t->state == State::at_warp && !warp) warp = t;
        if (t->state == State::at_barrier && !block) block = t;
        if (t->state == State::left && !gone) gone = t;
    }
    char text[400];
    if (warp) {
        const Thread* missing = nullptr;
        for (const Thread* t : now.threads)
            if (t->number / 32 == warp->number / 32 && (warp->mask >> t->lane() & 1) &&
                (t->state != State::at_warp || t->site != warp->site || t->what != warp->what || t->mask != warp->mask))
                missing = t;
        const char* where = !missing ? "is not in the block" : missing->state == State::left ? "has left the kernel"
                                                                                                 : "waits elsewhere";
        snprintf(text, sizeof text, "divergence: thread %u waits at %s (line %d, mask %#x) for thread %d, which %s%s%s", warp->number,
                 warp->what, warp->line, warp->mask, missing ? int(missing->number) : -1, where,
                 missing && missing->state != State::left ? " at " : "",
                 missing && missing->state != State::left ? missing->what : "");
    } else {
        snprintf(text, sizeof text, "barrier divergence: thread %u waits at __syncthreads (line %d), thread %u has left the kernel",
                 block->number, block->line, gone ? gone->number : 0);
    }
    failure = text;
}

/// All threads have come to a barrier: they go on.
bool release_barrier() {
    int count = 0;
    const Thread* first = now.threads[0];
    for (Thread* t : now.threads) {
        if (t->site != first->site || t->what != first->what) {
            char text[200];
            snprintf(text, sizeof text, "barrier divergence: thread %u waits at %s (line %d), thread %u at %s (line %d)%s", first->number,
                     first->what, first->line, t->number, t->what, t->line, t->line == first->line ? " in another branch" : "");
            failure = text;
            return false;
        }
        count += t->predicate;
    }
    ++now.epoch;
    for (Thread* t : now.threads) {
        t->mask = unsigned(count);
        t->state = State::ready;
    }
    return true;
}

}  // namespace

uint64_t draw() {
    now.random += 0x9e3779b97f4a7c15u;
    uint64_t z = now.random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void switch_to(Thread& thread) {
    current = &thread;
    change(scheduler, thread);
    current = nullptr;
}

void leave_fiber() { change(*current, scheduler); }

void fail(const char* format, ...) {
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (failure.empty()) failure = text;
    if (!current) {
        fprintf(stderr, "specc: %s (outside of a kernel)\n", text);
        abort();
    }
    leave_fiber();
    abort();
}

void count_slow_block() { slow_blocks += current->number == 0; }

uint3 thread_index() { return current->index; }
uint3 block_index() { return now.block_now; }
uint3 block_size() { return now.block; }
uint3 grid_size() { return now.grid; }

void meet(const char* what, unsigned mask, void* brought, Complete complete, int line, const void* site) {
    Thread& me = *current;
    if (!(mask >> me.lane() & 1)) fail("line %d: lane %u calls %s with a mask %#x that it is not in", line, me.lane(), what, mask);
    me.what = what, me.mask = mask, me.line = line, me.site = site ? site : __builtin_return_address(0), me.brought = brought, me.complete = complete;
    me.state = State::at_warp;
    const unsigned first = me.number / 32 * 32;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(mask >> lane & 1)) continue;
        if (first + lane >= now.threads.size()) fail("line %d: the mask %#x of %s names lane %u, which is not in the block", line, mask, what, lane);
        const Thread& other = *now.threads[first + lane];
        if (other.state == State::left) fail("line %d: the mask %#x of %s names lane %u, which has left the kernel", line, mask, what, lane);
        if (other.state != State::at_warp || other.site != me.site || other.what != what || other.mask != mask) return leave_fiber();
    }
    void* all[32] = {};
    for (unsigned lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1) all[lane] = now.threads[first + lane]->brought;
    complete(all, mask);
    for (unsigned lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1) now.threads[first + lane]->state = State::ready;
    leave_fiber();
}

void meet_and_order(unsigned mask, int line) {
    meet("__syncwarp", mask, nullptr, [](void* const*, unsigned lanes) {
        const unsigned start = current->number / 32 * 32;
        const uint16_t time = ++now.warp_times[start / 32];
        uint16_t known[32] = {};
        for (unsigned lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1)
                for (int n = 0; n < 32; ++n) {
                    const uint16_t k = now.threads[start + lane]->known[n];
                    if (k > known[n]) known[n] = k;
                }
        for (unsigned lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1) known[lane] = time;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1) {
                Thread& t = *now.threads[start + lane];
                t.time = time;
                for (int n = 0; n < 32; ++n) t.known[n] = known[n];
            }
    }, line, __builtin_return_address(0));
}

void barrier(int line) { barrier_count(false, line, __builtin_return_address(0)); }

int barrier_count(bool predicate, int line, const void* site) {
    Thread& me = *current;
    me.state = State::at_barrier;
    me.what = "__syncthreads", me.line = line, me.site = site ? site : __builtin_return_address(0), me.predicate = predicate;
    leave_fiber();
    return int(me.mask);
}

void run_block() {
    for (Thread* t : now.threads) {
        t->state = State::ready;
        t->time = 0;
        for (uint16_t& k : t->known) k = 0;
        prepare(*t);
    }
    now.warp_times.assign(now.threads.size() / 32 + 1, 0);
    std::vector<Thread*> order = now.threads;
    while (failure.empty() && alive()) {
        shuffle_order(order);
        bool moved = false;
        for (Thread* t : order) {
            if (t->state != State::ready) continue;
            switch_to(*t);
            if (!failure.empty()) return;
            moved = true;
        }
        if (moved) continue;
        if (waiting() != now.threads.size()) return report_stuck();
        if (!release_barrier()) return;
    }
}

int launch(const void* kernel, Invoke invoke, void* call, const Arguments& arguments, dim3 grid, dim3 block,
           size_t shared_bytes) {
    Dl_info info{};
    dladdr(kernel, &info);
    char* name = info.dli_sname ? abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr) : nullptr;
    now.kernel = name ? name : "kernel";
    free(name);
    now.grid = {grid.x, grid.y, grid.z};
    now.block = {block.x, block.y, block.z};
    const uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (!threads || threads > MOST_THREADS || !blocks || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
        failure = "a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads is not possible";
        return cudaErrorInvalidValue;
    }
    now.invoke = invoke, now.call = call;
    now.random = seed;
    have_chosen = false;
    const uint32_t shape[7] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, uint32_t(shared_bytes)};
    if (on_plan) {
        on_plan(now.kernel.c_str(), shape, &arguments);
        return cudaSuccess;
    }
    if (on_launch) on_launch(now.kernel.c_str(), shape);
    while (pool.size() < threads) pool.push_back(make_thread());
    now.threads.assign(pool.begin(), pool.begin() + int64_t(threads));
    for (unsigned n = 0; n < threads; ++n) {
        Thread& t = *now.threads[n];
        t.number = n;
        t.index = {n % block.x, n / block.x % block.y, n / block.x / block.y};
    }
    if (!find_statics(kernel, shared_bytes)) return cudaErrorInvalidValue;
    if (!have_chosen) {
        chosen.resize(blocks);
        for (size_t n = 0; n < blocks; ++n) chosen[n] = uint32_t(n);
    }
    shuffle_order(chosen);
    for (const uint32_t b : chosen) {
        now.block_now = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        ++now.epoch;
        now.first_epoch = now.epoch;
        start_block_memory(shared_bytes);
        run_block();
        reset_copies();
        if (!failure.empty()) {
            failure += " [block " + std::to_string(now.block_now.x) + ", " + std::to_string(now.block_now.y) + ", " +
                       std::to_string(now.block_now.z) + " of " + now.kernel + "]";
            return cudaErrorLaunchFailure;
        }
    }
    return cudaSuccess;
}

extern "C" {
void specc_host_seed(uint64_t number) { seed = number; }
void specc_host_on_launch(void (*callback)(const char*, const uint32_t*)) { on_launch = callback; }
/// Launches are only told, and do not run, as long as there is a callback.
void specc_host_on_plan(void (*callback)(const char*, const uint32_t*, const Arguments*)) { on_plan = callback; }
void specc_host_choose(const uint32_t* blocks, size_t count) {
    chosen.assign(blocks, blocks + count);
    have_chosen = true;
}
const char* specc_host_failure() { return failure.c_str(); }
/// How many blocks took a slow way since `specc_host_clear`.
uint64_t specc_host_slow_blocks() { return slow_blocks; }
void specc_host_clear() { failure.clear(), slow_blocks = 0; }
}

}  // namespace specc_host
