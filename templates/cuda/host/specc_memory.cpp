// Memory that a kernel may touch: every access that the compiler instruments is checked against it. Global buffers are
// registered by name; shared memory is the static data of the kernel's library and one dynamic block, and remembers
// who wrote and read it since which barrier.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "specc_runtime.h"

namespace specc_host {

namespace {

struct Buffer {
    std::string name;
    const char* start;
    size_t bytes, width;
    bool output;
    std::vector<uint8_t> writes;  // by element, of an output
};

/// Threads that did the same since a barrier, which is no race among themselves.
struct Several {
    uint32_t when = 0;   // at which barrier
    uint32_t lanes = 0;  // of one warp
    uint16_t one = 0, time = 0;
    bool many = false;   // threads of several warps
};

/// What happened to two bytes of shared memory.
struct Cell {
    uint32_t wrote = 0;  // at which barrier; before the block's first one: not at all
    uint16_t writer = 0, wrote_time = 0;
    Several read, changed;  // `changed`: by atomic operations
};

struct Area {
    std::string name, symbol;
    char* start;
    size_t bytes;
    std::vector<Cell> cells;
};

constexpr uint32_t COPYING = 1;
constexpr size_t MOST_SHARED = 227 * 1024;  // of a block: no GPU has more

std::vector<Buffer> buffers;
/// A kernel's library: its static variables by address, and its read-only part.
struct Library {
    std::vector<Area> areas;
    const char *low = nullptr, *high = nullptr;
};

std::map<const void*, Library> libraries;
Library* library = nullptr;
Area dynamic_area;

/// The variable of a mangled local name: `_ZZ9kernelE4tile` gives `tile`.
std::string local_name(const std::string& mangled) {
    std::string s = mangled;
    const size_t suffix = s.rfind('_');
    if (suffix != std::string::npos && suffix + 1 < s.size() && s.find_first_not_of("0123456789", suffix + 1) == std::string::npos)
        s.resize(suffix);
    for (size_t n = 1; n < s.size(); ++n) {
        size_t digits = 0;
        while (digits < n && s[s.size() - n - digits - 1] >= '0' && s[s.size() - n - digits - 1] <= '9') ++digits;
        for (size_t d = 1; d <= digits; ++d)
            if (std::stoul(s.substr(s.size() - n - d, d)) == n) return s.substr(s.size() - n);
    }
    return mangled;
}

Library read_library(const char* path, const char* base) {
    Library found;
    const int handle = open(path, O_RDONLY);
    struct stat status{};
    if (handle < 0 || fstat(handle, &status)) return found;
    void* mapped = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, handle, 0);
    close(handle);
    const auto* bytes = static_cast<const char*>(mapped);
    const auto* head = reinterpret_cast<const Elf64_Ehdr*>(bytes);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + head->e_shoff);
    const auto* segments = reinterpret_cast<const Elf64_Phdr*>(bytes + head->e_phoff);
    found.low = found.high = base;
    for (int n = 0; n < head->e_phnum; ++n)
        if (segments[n].p_type == PT_LOAD && !(segments[n].p_flags & PF_W)) found.high = base + segments[n].p_vaddr + segments[n].p_memsz;
    for (int n = 0; n < head->e_shnum; ++n) {
        if (sections[n].sh_type != SHT_SYMTAB) continue;
        const char* names = bytes + sections[sections[n].sh_link].sh_offset;
        const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + sections[n].sh_offset);
        for (size_t k = 0; k < sections[n].sh_size / sizeof(Elf64_Sym); ++k) {
            const std::string name = names + symbols[k].st_name;
            if (ELF64_ST_TYPE(symbols[k].st_info) != STT_OBJECT || name.rfind("_ZZ", 0) || symbols[k].st_shndx >= head->e_shnum ||
                !(sections[symbols[k].st_shndx].sh_flags & SHF_WRITE))
                continue;
            found.areas.push_back({local_name(name), name, const_cast<char*>(base) + symbols[k].st_value, symbols[k].st_size, {}});
        }
    }
    munmap(mapped, size_t(status.st_size));
    for (Area& a : found.areas) a.cells.resize((a.bytes + 1) / 2);
    std::sort(found.areas.begin(), found.areas.end(), [](const Area& a, const Area& b) { return a.start < b.start; });
    return found;
}

/// Whether `mine` knows what `other` did at `time`.
bool ordered(const Thread& mine, unsigned other, uint16_t time) {
    return other == mine.number || (other / 32 == mine.number / 32 && mine.known[other % 32] > time);
}

/// Whether `mine` knows what all of them did, if they did it since the last barrier.
bool all_ordered(const Thread& mine, const Several& others) {
    if (others.when != now.epoch) return true;
    if (others.many || others.one / 32u != mine.number / 32) return false;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((others.lanes >> lane & 1) && !ordered(mine, others.one / 32u * 32 + lane, others.time)) return false;
    return true;
}

void join(Several& others, const Thread& mine) {
    if (others.when != now.epoch) others = {now.epoch, 0, uint16_t(mine.number), 0, false};
    others.many |= others.one / 32u != mine.number / 32;
    others.lanes |= 1u << mine.lane();
    others.time = std::max(others.time, mine.time);
}

constexpr const char *READ = "or another read", *CHANGED = "or another changed by an atomic operation";

[[noreturn]] void race(const Area& a, size_t byte, const char* mine, const char* other, unsigned thread) {
    fail("race: thread %u %s byte %zu of shared `%s`, which thread %u %s with no barrier between", current->number, mine, byte,
         a.name.c_str(), thread, other);
}

void shared_read(Area& a, size_t byte, size_t bytes) {
    const Thread& me = *current;
    for (size_t n = byte / 2; n <= (byte + bytes - 1) / 2; ++n) {
        Cell& c = a.cells[n];
        if (c.wrote == COPYING)
            fail("thread %u reads byte %zu of shared `%s` before the wait for its cp.async", me.number, n * 2, a.name.c_str());
        if (c.wrote < now.first_epoch)
            fail("uninitialised: thread %u reads byte %zu of shared `%s`, which was never written", me.number, n * 2, a.name.c_str());
        if (c.wrote == now.epoch && !ordered(me, c.writer, c.wrote_time)) race(a, n * 2, "reads", "wrote", c.writer);
        if (!all_ordered(me, c.changed)) race(a, n * 2, "reads", CHANGED, c.changed.one);
        join(c.read, me);
    }
}

void shared_write(Area& a, size_t byte, size_t bytes, bool copying = false) {
    const Thread& me = *current;
    for (size_t n = byte / 2; n <= (byte + bytes - 1) / 2; ++n) {
        Cell& c = a.cells[n];
        if (c.wrote == COPYING && c.writer != me.number)
            fail("race: thread %u writes byte %zu of shared `%s`, which thread %u copies with cp.async", me.number, n * 2, a.name.c_str(), c.writer);
        if (c.wrote == now.epoch && !ordered(me, c.writer, c.wrote_time)) race(a, n * 2, "writes", "wrote", c.writer);
        if (!all_ordered(me, c.read)) race(a, n * 2, "writes", READ, c.read.one);
        if (!all_ordered(me, c.changed)) race(a, n * 2, "writes", CHANGED, c.changed.one);
        c.wrote = copying ? COPYING : now.epoch;
        c.writer = uint16_t(me.number), c.wrote_time = me.time;
    }
}

void shared_change(Area& a, size_t byte, size_t bytes) {
    const Thread& me = *current;
    for (size_t n = byte / 2; n <= (byte + bytes - 1) / 2; ++n) {
        Cell& c = a.cells[n];
        if (c.wrote < now.first_epoch)
            fail("uninitialised: thread %u changes byte %zu of shared `%s`, which was never written", me.number, n * 2, a.name.c_str());
        if (c.wrote == now.epoch && !ordered(me, c.writer, c.wrote_time)) race(a, n * 2, "changes", "wrote", c.writer);
        if (!all_ordered(me, c.read)) race(a, n * 2, "changes", READ, c.read.one);
        join(c.changed, me);
    }
}

Area* area_of(const char* address) {
    if (address >= dynamic_area.start && address < dynamic_area.start + dynamic_area.bytes) return &dynamic_area;
    std::vector<Area>& areas = library->areas;
    auto after = std::upper_bound(areas.begin(), areas.end(), address, [](const char* p, const Area& a) { return p < a.start; });
    if (after == areas.begin()) return nullptr;
    Area& a = *(after - 1);
    return address < a.start + a.bytes ? &a : nullptr;
}

[[noreturn]] void outside(const char* address, size_t bytes, bool write) {
    const char* verb = write ? "writes" : "reads";
    const unsigned me = current->number;
    std::string name;
    int64_t distance = INT64_MAX, extent = 0, width = 1;
    auto consider = [&](const std::string& what, const char* start, size_t size, size_t element) {
        const int64_t off = address < start ? start - address : std::max<int64_t>(0, address - start - int64_t(size) + 1);
        if (off < distance) {
            distance = off;
            name = what, extent = int64_t(size / element), width = int64_t(element);
            name += "[" + std::to_string((address - start) / int64_t(element)) + "]";
        }
    };
    for (const Buffer& b : buffers) consider(b.name, b.start, b.bytes, b.width);
    for (const Area& a : library->areas) consider("byte of shared " + a.name, a.start, a.bytes, 1);
    if (dynamic_area.bytes) consider("byte of dynamic shared memory ", dynamic_area.start, dynamic_area.bytes, 1);
    fail("out of range: thread %u %s %zu bytes at %s, which has %lld elements of %lld bytes", me, verb, bytes, name.c_str(),
         static_cast<long long>(extent), static_cast<long long>(width));
}

void access(const void* place, size_t bytes, bool write) {
    if (!current) return;  // the launch wrapper
    const auto* address = static_cast<const char*>(place);
    if (address >= current->stack_low && address + bytes <= current->stack_high) return;
    for (Buffer& b : buffers) {
        if (address < b.start || address >= b.start + b.bytes) continue;
        if (address + bytes > b.start + b.bytes) outside(address, bytes, write);
        const size_t first = size_t(address - b.start) / b.width, last = size_t(address - b.start + bytes - 1) / b.width;
        if (write && !b.output) fail("thread %u writes %s[%zu], which is an input", current->number, b.name.c_str(), first);
        if (b.output)
            for (size_t n = first; n <= last; ++n) {
                if (write && b.writes[n] < 255) ++b.writes[n];
                if (!write && !b.writes[n]) fail("uninitialised: thread %u reads %s[%zu], which was never written", current->number, b.name.c_str(), n);
            }
        return;
    }
    if (Area* a = area_of(address)) {
        if (address + bytes > a->start + a->bytes) outside(address, bytes, write);
        return write ? shared_write(*a, size_t(address - a->start), bytes) : shared_read(*a, size_t(address - a->start), bytes);
    }
    if (!write && address >= library->low && address < library->high) return;  // a constant of the kernel's library
    outside(address, bytes, write);
}

}  // namespace

bool find_statics(const void* kernel, size_t dynamic_bytes) {
    Dl_info info{};
    if (!dladdr(kernel, &info)) abort();
    auto known = libraries.find(info.dli_fbase);
    if (known == libraries.end())
        known = libraries.emplace(info.dli_fbase, read_library(info.dli_fname, static_cast<const char*>(info.dli_fbase))).first;
    library = &known->second;
    const std::string locals = "_Z" + std::string(info.dli_sname ? info.dli_sname + 1 : "") + "E";
    size_t static_bytes = 0;
    for (const Area& a : library->areas)
        if (a.symbol.rfind(locals, 0) == 0) static_bytes += a.bytes;
    if (static_bytes + dynamic_bytes <= MOST_SHARED) return true;
    failure = "a launch with " + std::to_string(static_bytes) + " bytes of static and " + std::to_string(dynamic_bytes) +
              " of dynamic shared memory is not possible";
    return false;
}

void start_block_memory(size_t dynamic_bytes) {
    if (!dynamic_area.start) {
        void* p = mmap(nullptr, MOST_SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        dynamic_area = {"dynamic", "", static_cast<char*>(p), 0, std::vector<Cell>(MOST_SHARED / 2)};
    }
    dynamic_area.bytes = dynamic_bytes;
    memset(dynamic_area.start, 0xff, dynamic_area.bytes);
    for (Area& a : library->areas) memset(a.start, 0xff, a.bytes);
}

void* dynamic_shared(size_t) { return dynamic_area.start; }
bool is_shared(const void* address) { return area_of(static_cast<const char*>(address)) != nullptr; }

void check_read(const void* from, size_t bytes, size_t alignment) {
    if (reinterpret_cast<uintptr_t>(from) % alignment) fail("misaligned: thread %u reads %zu bytes at an address that is no multiple of %zu", current->number, bytes, alignment);
    access(from, bytes, false);
}

void check_write(void* to, size_t bytes, size_t alignment) {
    if (reinterpret_cast<uintptr_t>(to) % alignment) fail("misaligned: thread %u writes %zu bytes at an address that is no multiple of %zu", current->number, bytes, alignment);
    access(to, bytes, true);
}

void checked_load(void* to, const void* from, size_t bytes, size_t alignment) {
    check_read(from, bytes, alignment);
    memcpy(to, from, bytes);
}

void checked_store(void* to, const void* from, size_t bytes, size_t alignment) {
    check_write(to, bytes, alignment);
    memcpy(to, from, bytes);
}

void check_atomic(void* address, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(address) % bytes) fail("misaligned: thread %u has an atomic operation at an address that is no multiple of %zu", current->number, bytes);
    auto* place = static_cast<char*>(address);
    if (Area* a = area_of(place)) {
        if (place + bytes > a->start + a->bytes) outside(place, bytes, true);
        return shared_change(*a, size_t(place - a->start), bytes);
    }
    access(address, bytes, false);
    access(address, bytes, true);
}

void copy_async(void* to, const void* from, size_t bytes) {
    auto* target = static_cast<char*>(to);
    Area* a = area_of(target);
    if (!a) fail("cp.async of thread %u writes no shared memory", current->number);
    if (target + bytes > a->start + a->bytes) outside(target, bytes, true);
    if (from) check_read(from, bytes, std::min<size_t>(bytes, 16));
    shared_write(*a, size_t(target - a->start), bytes, true);
    memset(target, 0xff, bytes);
    current->copies.push_back({target, static_cast<const char*>(from), bytes});
}

void commit_copies() {
    current->groups.push_back(std::move(current->copies));
    current->copies.clear();
}

void wait_copies(unsigned groups_left) {
    auto& groups = current->groups;
    while (groups.size() > groups_left) {
        for (const Copy& c : groups.front()) {
            Area& a = *area_of(c.to);
            if (c.from) memcpy(c.to, c.from, c.bytes); else memset(c.to, 0, c.bytes);
            for (size_t n = size_t(c.to - a.start) / 2; n < (size_t(c.to - a.start) + c.bytes) / 2; ++n)
                a.cells[n].wrote = now.epoch, a.cells[n].wrote_time = current->time;
        }
        groups.erase(groups.begin());
    }
}

void reset_copies() {
    for (Thread* t : now.threads) {
        t->groups.push_back(std::move(t->copies));
        for (const auto& group : t->groups)
            for (const Copy& c : group)
                if (Area* a = area_of(c.to))
                    for (size_t n = size_t(c.to - a->start) / 2; n < (size_t(c.to - a->start) + c.bytes) / 2; ++n) a->cells[n].wrote = 0;
        t->groups.clear();
        t->copies.clear();
    }
}

extern "C" {

void specc_host_forget() { buffers.clear(); }
/// A buffer of elements of `width` bytes; reads of an output that was not written are faults.
void specc_host_buffer(const char* name, const void* start, size_t bytes, size_t width, int output) {
    buffers.push_back({name, static_cast<const char*>(start), bytes, width, output != 0, std::vector<uint8_t>(output ? bytes / width : 0)});
}
/// How often each element of an output was written, or null.
const uint8_t* specc_host_writes(const char* name) {
    for (const Buffer& b : buffers)
        if (b.name == name && b.output) return b.writes.data();
    return nullptr;
}

#define SPECC_ACCESS(bytes)                                                      \
    void __tsan_read##bytes(void* p) { access(p, bytes, false); }                \
    void __tsan_write##bytes(void* p) { access(p, bytes, true); }                \
    void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, false); }      \
    void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, true); }
SPECC_ACCESS(1)
SPECC_ACCESS(2)
SPECC_ACCESS(4)
SPECC_ACCESS(8)
SPECC_ACCESS(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, false); }
void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, true); }
// Clang's copies of whole objects.
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
    if (bytes) access(from, bytes, false), access(to, bytes, true);
    return memmove(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) { return __tsan_memcpy(to, from, bytes); }
void* __tsan_memset(void* to, int byte, size_t bytes) {
    if (bytes) access(to, bytes, true);
    return memset(to, byte, bytes);
}

struct Where {
    const char* file;
    uint32_t line, column;
};
#define SPECC_UNDEFINED(name, text)                                                   \
    void __ubsan_handle_##name(Where* at, ...) {                                      \
        fail("line %u: thread %u: %s", at->line, current ? current->number : 0, text); \
    }
SPECC_UNDEFINED(add_overflow, "a sum overflows its integer type")
SPECC_UNDEFINED(sub_overflow, "a difference overflows its integer type")
SPECC_UNDEFINED(mul_overflow, "a product overflows its integer type")
SPECC_UNDEFINED(negate_overflow, "a negated number overflows its integer type")
SPECC_UNDEFINED(divrem_overflow, "a division by zero, or one that overflows")
SPECC_UNDEFINED(shift_out_of_bounds, "a shift by more than there are bits")
SPECC_UNDEFINED(type_mismatch_v1, "an address that is misaligned or null")
void __ubsan_handle_out_of_bounds(Where* at, uintptr_t index) {
    fail("line %u: thread %u: out of range: index %lld of an array", at->line, current ? current->number : 0, static_cast<long long>(index));
}
}

}  // namespace specc_host
