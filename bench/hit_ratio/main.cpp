// SPDX-License-Identifier: BSL-1.0
// turnstile_hit_ratio [FOLDER]: the hit ratios of the eviction policies, as CSV. The traces are
// generated, and read from the .trace files of the folder, which have one key in each line.
// bench/hit_ratio/run makes the table and the plot of doc/work_cache_eviction.md from it.
#include "kit/eviction_simulation.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using sizes = std::vector<std::size_t>;

// The sizes at which the known traces are measured.
const std::map<std::string, sizes> known = {
    {"loop", {250, 500, 1000}},    {"2_pools", {450, 1000}},      {"multi1", {500, 1000, 2000}},
    {"multi2", {500, 1000, 2000}}, {"multi3", {500, 1000, 2000}}, {"gli", {250, 500, 1000, 2000}},
    {"sprite", {100, 400, 1000}},  {"cpp", {20, 100, 300}},       {"cs", {500, 1000}},
    {"ps", {500, 1000, 2000}},
};

kit::trace read(const std::filesystem::path& file)
{
    kit::trace out;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line[0] != '*')
            out.push_back(std::stoull(line));
    }
    return out;
}

void measure(const std::string& name, const kit::trace& t, const sizes& of)
{
    using turnstile::eviction_policy;
    for (const std::size_t size : of) {
        std::printf("%s,%zu,%zu,%.1f,%.1f,%.1f,%.1f\n", name.c_str(), t.size(), size,
                    kit::hit_ratio(t, size, eviction_policy::w_tiny_lfu),
                    kit::hit_ratio(t, size, eviction_policy::lru),
                    kit::fixed_window_hit_ratio(t, size), kit::optimal_hit_ratio(t, size));
    }
}

} // namespace

int main(int argc, char** argv)
{
    constexpr std::size_t length = 300'000;
    std::puts("trace,accesses,entries,w_tiny_lfu,lru,fixed window,optimum");
    if (argc > 1) {
        std::map<std::string, std::filesystem::path> files;
        for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
            if (file.path().extension() == ".trace")
                files[file.path().stem().string()] = file.path();
        }
        for (const auto& [name, path] : files) {
            const auto it = known.find(name);
            measure(name, read(path), it == known.end() ? sizes{100, 1000} : it->second);
        }
    }
    measure("Zipf 0.7", kit::zipf_trace(0.7, length, 1), {100, 1000, 4000});
    measure("Zipf 0.9", kit::zipf_trace(0.9, length, 2), {16, 100, 1000, 4000});
    measure("Zipf 1.1", kit::zipf_trace(1.1, length, 3), {16, 100, 1000});
    measure("Zipf 0.9 with scans", kit::scan_trace(length, 4), {16, 100, 1000, 4000});
    measure("Zipf 0.9 that shifts", kit::shift_trace(length, 5), {100, 1000});
    measure("recency", kit::recency_trace(length, 6), {16, 100, 500, 1000});
    measure("loop of 1500", kit::loop_trace(1500, length), {16, 1000});
    measure("recency and a loop in turn", kit::mixed_trace(length, 7), {200, 1000});
}
