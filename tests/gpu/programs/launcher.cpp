// Launches the kernels of a module and says what it launched, as one line of JSON.
//
//   launcher MODULE [options] NAME=GRID:BLOCK[:SHARED[:PARAMETER[-LAST]]] ...
//
//     --launches N     launches of each thread; the shapes take turns          (default 1)
//     --seconds S      launch for so long instead
//     --rate R         launches per second and thread                         (default: no limit)
//     --threads N      threads that launch, each on a stream of its own        (default 1)
//     --graph          one graph of all shapes, launched instead of the shapes one by one
//     --variants N     dynamic shared memory grows by 0 to N - 1 times 16 bytes from turn to turn:
//                      N launch shapes that do the same
//     --pause          say "ready" before the first launch and wait for a line
//     --warm-up S      launch for so long first, then say "ready" and wait for a line; these
//                      launches are not in the report
//     --drain N        synchronise after every N launches                      (default 256)
//
// PARAMETER-LAST is a number that changes from launch to launch between the two, evenly spread.
// The driver is found at run time, so the program also runs on a stand-in for it. Exit codes: 0
// done, 1 the driver refused something, 2 wrong usage, 77 the driver lacks what was asked for.

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Handle = void *;
using Address = unsigned long long;

constexpr size_t BUFFER_BYTES = size_t{64} << 20;
constexpr int MISSING = 77;

// CUfunction_attribute and CUdevice_attribute (cuda.h).
constexpr int NUM_REGS = 4, SHARED_SIZE_BYTES = 1, MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
constexpr int MAX_THREADS_PER_MULTIPROCESSOR = 39;

void check(int code, const char *call) {
    if (code != 0) {
        std::fprintf(stderr, "launcher: %s failed with CUresult %d\n", call, code);
        std::exit(1);
    }
}

// A function of the driver, by name.
class Driver {
public:
    Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
        if (library_ == nullptr) {
            std::fprintf(stderr, "launcher: %s\n", dlerror());
            std::exit(MISSING);
        }
    }

    template <typename... Arguments>
    void call(const char *name, Arguments... arguments) const {
        check(entry<Arguments...>(name)(arguments...), name);
    }

    template <typename... Arguments>
    int (*entry(const char *name) const)(Arguments...) {
        void *symbol = dlsym(library_, name);
        if (symbol == nullptr) {
            std::fprintf(stderr, "launcher: this driver has no %s\n", name);
            std::exit(MISSING);
        }
        return reinterpret_cast<int (*)(Arguments...)>(symbol);
    }

private:
    void *library_;
};

struct Shape {
    std::string kernel;
    unsigned grid = 1, block = 32, shared = 0, first = 1, last = 1;
    Handle function = nullptr;
};

struct Options {
    std::string module;
    std::vector<Shape> shapes;
    uint64_t launches = 1, drain = 256;
    double seconds = 0, rate = 0, warm_up = 0;
    unsigned threads = 1, variants = 1;
    bool graph = false, pause = false;
};

struct Buffers {
    Address in = 0, out = 0;
};

// What one thread launched, per shape.
struct Count {
    uint64_t launches = 0, blocks = 0;
    // Sum over launches of blocks x parameter, from which instructions follow.
    uint64_t block_parameters = 0;
};

[[noreturn]] void usage(const std::string &what) {
    std::fprintf(stderr, "launcher: %s; see the head of launcher.cpp\n", what.c_str());
    std::exit(2);
}

Shape read_shape(const std::string &text) {
    char name[64] = {};
    Shape shape;
    const int read = std::sscanf(text.c_str(), "%63[^=]=%u:%u:%u:%u-%u", name, &shape.grid,
                                 &shape.block, &shape.shared, &shape.first, &shape.last);
    if (read < 3) usage(text + " is not NAME=GRID:BLOCK[:SHARED[:PARAMETER[-LAST]]]");
    if (read < 6) shape.last = shape.first;
    shape.kernel = name;
    return shape;
}

Options read_options(int count, char **words) {
    Options options;
    for (int index = 1; index < count; ++index) {
        const std::string word = words[index];
        const auto value = [&]() -> const char * {
            if (++index >= count) usage(word + " needs a value");
            return words[index];
        };
        if (word == "--launches") options.launches = std::strtoull(value(), nullptr, 10);
        else if (word == "--seconds") options.seconds = std::atof(value());
        else if (word == "--rate") options.rate = std::atof(value());
        else if (word == "--threads") options.threads = std::atoi(value());
        else if (word == "--variants") options.variants = std::atoi(value());
        else if (word == "--warm-up") options.warm_up = std::atof(value());
        else if (word == "--drain") options.drain = std::strtoull(value(), nullptr, 10);
        else if (word == "--graph") options.graph = true;
        else if (word == "--pause") options.pause = true;
        else if (word.rfind("--", 0) == 0) usage("unknown option " + word);
        else if (options.module.empty()) options.module = word;
        else options.shapes.push_back(read_shape(word));
    }
    if (options.module.empty() || options.shapes.empty()) usage("expected MODULE and a shape");
    if (options.variants == 0 || options.drain == 0) usage("--variants and --drain start at 1");
    return options;
}

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) usage(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

void launch(const Driver &driver, const Shape &shape, unsigned shared, unsigned parameter,
            Handle stream, Buffers &buffers) {
    static const auto kernel =
        driver.entry<Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     Handle, void **, void **>("cuLaunchKernel");
    void *arguments[] = {&buffers.in, &buffers.out, &parameter};
    check(kernel(shape.function, shape.grid, 1, 1, shape.block, 1, 1, shared, stream, arguments,
                 nullptr),
          "cuLaunchKernel");
}

void add(Count &count, unsigned grid, unsigned parameter) {
    count.launches += 1;
    count.blocks += grid;
    count.block_parameters += uint64_t{grid} * parameter;
}

// All shapes in one graph, recorded from a stream. Returns it ready to be launched.
Handle record_graph(const Driver &driver, const Options &options, Handle stream, Buffers &buffers) {
    Handle graph = nullptr, executable = nullptr;
    driver.call("cuStreamBeginCapture_v2", stream, 1);  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    for (const Shape &shape : options.shapes) {
        launch(driver, shape, shape.shared, shape.first, stream, buffers);
    }
    driver.call("cuStreamEndCapture", stream, &graph);
    driver.call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
    return executable;
}

void run_thread(const Driver &driver, const Options &options, Handle context, Buffers buffers,
                unsigned seed, std::vector<Count> &counts) {
    driver.call("cuCtxSetCurrent", context);
    Handle stream = nullptr;
    driver.call("cuStreamCreate", &stream, 1U);  // CU_STREAM_NON_BLOCKING
    const Handle graph =
        options.graph ? record_graph(driver, options, stream, buffers) : Handle{nullptr};
    const auto started = Clock::now();
    uint32_t random = seed * 2654435761u + 1;
    for (uint64_t turn = 0;; ++turn) {
        const double elapsed = std::chrono::duration<double>(Clock::now() - started).count();
        if (options.seconds > 0 ? elapsed >= options.seconds : turn >= options.launches) break;
        if (options.rate > 0 && turn / options.rate > elapsed) {
            std::this_thread::sleep_for(
                std::chrono::duration<double>(turn / options.rate - elapsed));
        }
        if (options.graph) {
            driver.call("cuGraphLaunch", graph, stream);
            for (size_t index = 0; index < counts.size(); ++index) {
                add(counts[index], options.shapes[index].grid, options.shapes[index].first);
            }
        } else {
            const size_t index = turn % options.shapes.size();
            const Shape &shape = options.shapes[index];
            const unsigned variant =
                static_cast<unsigned>(turn / options.shapes.size() % options.variants);
            random = random * 1664525u + 1013904223u;
            const unsigned parameter =
                shape.first + (random >> 8) % (shape.last - shape.first + 1);
            launch(driver, shape, shape.shared + 16 * variant, parameter, stream, buffers);
            add(counts[index], shape.grid, parameter);
        }
        if ((turn + 1) % options.drain == 0) driver.call("cuStreamSynchronize", stream);
    }
    driver.call("cuStreamSynchronize", stream);
}

// What each thread launched; returns when all of it has run.
std::vector<std::vector<Count>> run_threads(const Driver &driver, const Options &options,
                                            Handle context, const Buffers &buffers) {
    std::vector<std::vector<Count>> counts(options.threads,
                                           std::vector<Count>(options.shapes.size()));
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < options.threads; ++index) {
        threads.emplace_back(run_thread, std::cref(driver), std::cref(options), context, buffers,
                             index, std::ref(counts[index]));
    }
    for (std::thread &thread : threads) thread.join();
    driver.call("cuCtxSynchronize");
    return counts;
}

void wait_for_a_line() {
    std::puts("ready");
    std::fflush(stdout);
    for (int byte = getchar(); byte != '\n' && byte != EOF; byte = getchar()) {
    }
}

long peak_memory_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmHWM:", 0) == 0) return std::atol(line.c_str() + 6);
    }
    return 0;
}

void print_shape(const Driver &driver, const Shape &shape, const Count &count, int max_threads) {
    int registers = 0, shared = 0, blocks = 0;
    driver.call("cuFuncGetAttribute", &registers, NUM_REGS, shape.function);
    driver.call("cuFuncGetAttribute", &shared, SHARED_SIZE_BYTES, shape.function);
    driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, shape.function,
                static_cast<int>(shape.block), static_cast<size_t>(shape.shared));
    const double warps = (shape.block + 31) / 32;
    std::printf(
        R"({"kernel":"%s","grid":%u,"block":%u,"shared":%u,"parameter":%u,"registers":%d,)"
        R"("static_shared":%d,"occupancy_percent":%.17g,"launches":%llu,"blocks":%llu,)"
        R"("block_parameters":%llu})",
        shape.kernel.c_str(), shape.grid, shape.block, shape.shared, shape.first, registers, shared,
        100.0 * blocks * warps / (max_threads / 32), static_cast<Address>(count.launches),
        static_cast<Address>(count.blocks), static_cast<Address>(count.block_parameters));
}

}  // namespace

int main(int count, char **words) {
    Options options = read_options(count, words);
    const std::string image = read_file(options.module);
    const Driver driver;
    Handle context = nullptr, module = nullptr;
    int device = 0, max_threads = 0;
    driver.call("cuInit", 0U);
    driver.call("cuDeviceGet", &device, 0);
    driver.call("cuDeviceGetAttribute", &max_threads, MAX_THREADS_PER_MULTIPROCESSOR, device);
    driver.call("cuDevicePrimaryCtxRetain", &context, device);
    driver.call("cuCtxSetCurrent", context);
    driver.call("cuModuleLoadData", &module, image.c_str());
    for (Shape &shape : options.shapes) {
        driver.call("cuModuleGetFunction", &shape.function, module, shape.kernel.c_str());
        if (shape.shared > 0) {
            driver.call("cuFuncSetAttribute", shape.function, MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        static_cast<int>(shape.shared));
        }
    }
    Buffers buffers;
    driver.call("cuMemAlloc_v2", &buffers.in, BUFFER_BYTES);
    driver.call("cuMemAlloc_v2", &buffers.out, BUFFER_BYTES);
    if (options.pause) wait_for_a_line();

    if (options.warm_up > 0) {
        Options warm_up = options;
        warm_up.seconds = options.warm_up;
        run_threads(driver, warm_up, context, buffers);
        wait_for_a_line();
    }
    const auto started = Clock::now();
    const auto counts = run_threads(driver, options, context, buffers);
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();

    std::printf(R"({"pid":%d,"seconds":%.6f,"peak_memory_kib":%ld,"shapes":[)", getpid(), seconds,
                peak_memory_kib());
    for (size_t index = 0; index < options.shapes.size(); ++index) {
        Count sum;
        for (const auto &thread : counts) {
            sum.launches += thread[index].launches;
            sum.blocks += thread[index].blocks;
            sum.block_parameters += thread[index].block_parameters;
        }
        if (index > 0) std::printf(",");
        print_shape(driver, options.shapes[index], sum, max_threads);
    }
    std::printf("]}\n");
    return 0;
}
