// What the parts of the runtime share: the launch that is running, its threads, and the memory that it may touch.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#define SPECC_RUNTIME 1
#include "specc_host.h"

namespace specc_host {

enum class State : uint8_t { ready, at_warp, at_barrier, left };

struct Copy {
    char* to;
    const char* from;
    size_t bytes;
};

struct Thread {
    void* stack_pointer = nullptr;
    char *stack_low = nullptr, *stack_high = nullptr;
    uint3 index{};
    unsigned number = 0;
    State state = State::ready;
    const char* what = "";   // the operation at which it waits
    unsigned mask = 0;
    int line = 0;
    const void* site = nullptr;
    void* brought = nullptr;
    Complete complete = nullptr;
    bool predicate = false;
    uint16_t time = 0;       // number of the last __syncwarp that it took part in
    uint16_t known[32] = {};  // by lane: what that lane did before this __syncwarp is known here
    std::vector<Copy> copies;              // of the group that is not committed yet
    std::vector<std::vector<Copy>> groups;  // oldest first
    unsigned lane() const { return number % 32; }
};

struct Launch {
    std::string kernel;
    uint3 grid{}, block{}, block_now{};
    Invoke invoke = nullptr;
    void* call = nullptr;
    uint32_t epoch = 1, first_epoch = 1;  // barriers so far, and at the start of this block
    std::vector<Thread*> threads;
    std::vector<uint16_t> warp_times;
    uint64_t random = 0;
};

extern Launch now;
extern Thread* current;
extern std::string failure;

uint64_t draw();
void switch_to(Thread& thread);
void leave_fiber();
void run_block();
void reset_copies();

/// Finds the shared memory of a kernel; whether a GPU has as much for a block.
bool find_statics(const void* kernel, size_t dynamic_bytes);
void start_block_memory(size_t dynamic_bytes);
void written_at_barrier();

}  // namespace specc_host
