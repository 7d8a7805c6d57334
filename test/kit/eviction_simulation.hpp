// SPDX-License-Identifier: BSL-1.0
// Hit ratios of eviction policies by simulation: generated traces, the library's cache_eviction,
// and the policies it is compared with. The tests and bench/hit_ratio use it.
#pragma once

#include <turnstile/detail/util/random.hpp>
#include <turnstile/work/detail/cache_eviction.hpp>
#include <turnstile/work/eviction_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kit {

// The keys that are accessed, in order.
using trace = std::vector<std::uint64_t>;

// Ranks from 0, the k-th with a probability proportional to 1 / (k + 1)^skew.
class zipf {
public:
    zipf(std::size_t ranks, double skew, std::uint64_t seed) : random_(seed)
    {
        double sum = 0;
        for (std::size_t i = 0; i != ranks; ++i)
            sums_.push_back(sum += std::pow(static_cast<double>(i + 1), -skew));
    }
    std::uint64_t operator()()
    {
        const double where = static_cast<double>(random_.next() >> 11) * 0x1p-53 * sums_.back();
        return static_cast<std::uint64_t>(std::upper_bound(sums_.begin(), sums_.end() - 1, where) -
                                          sums_.begin());
    }

private:
    std::vector<double> sums_;
    turnstile::detail::random_source random_;
};

constexpr std::size_t ranks = 20'000;
constexpr std::uint64_t elsewhere = 1'000'000'000; // the distance between sets of keys

inline trace zipf_trace(double skew, std::size_t length, std::uint64_t seed)
{
    trace out(length);
    std::generate(out.begin(), out.end(), zipf(ranks, skew, seed));
    return out;
}

// Twice as many accesses with a Zipf distribution as accesses of keys that never come back.
inline trace scan_trace(std::size_t length, std::uint64_t seed)
{
    trace out;
    zipf next(ranks, 0.9, seed);
    while (out.size() < length) {
        std::generate_n(std::back_inserter(out), 5000, std::ref(next));
        for (std::size_t i = 0; i != 2500; ++i)
            out.push_back(elsewhere + out.size());
    }
    return out;
}

// A Zipf distribution, each sixth of the trace with keys of its own.
inline trace shift_trace(std::size_t length, std::uint64_t seed)
{
    trace out;
    zipf next(ranks, 0.9, seed);
    for (std::size_t i = 0; i != length; ++i)
        out.push_back(next() + elsewhere * (i / (length / 6)));
    return out;
}

inline trace loop_trace(std::size_t keys, std::size_t length)
{
    trace out;
    for (std::size_t i = 0; i != length; ++i)
        out.push_back(i % keys);
    return out;
}

// Every third access is of a new key, the others are of keys that are recent.
inline trace recency_trace(std::size_t length, std::uint64_t seed)
{
    trace out;
    zipf next(2000, 0.6, seed);
    std::uint64_t newest = 2000;
    for (std::size_t i = 0; i != length; ++i) {
        newest += i % 3 == 0 ? 1 : 0;
        out.push_back(newest - next());
    }
    return out;
}

// Recency and a loop in turn, six times each.
inline trace mixed_trace(std::size_t length, std::uint64_t seed)
{
    trace out;
    const trace loop = loop_trace(1300, length / 12);
    const trace recency = recency_trace(length / 12, seed);
    for (std::uint64_t i = 0; i != 12; ++i) {
        for (const std::uint64_t key : i % 2 == 0 ? recency : loop)
            out.push_back(key + elsewhere * i);
    }
    return out;
}

inline double percent(std::uint64_t hits, const trace& t)
{
    return 100.0 * static_cast<double>(hits) / static_cast<double>(t.size());
}

// The hit ratio of the library's policies in percent, with entries of weight 1.
inline double hit_ratio(const trace& t, std::uint64_t size, turnstile::eviction_policy policy,
                        std::uint64_t seed = 1)
{
    using namespace turnstile::detail;
    struct entry : eviction_entry {
        explicit entry(std::uint64_t k) : eviction_entry(k, 1), key(k) {}
        std::uint64_t key;
    };
    std::unordered_map<std::uint64_t, entry> entries;
    cache_eviction machine(policy, size, seed);
    std::uint64_t hits = 0;
    for (const std::uint64_t key : t) {
        const auto [it, is_new] = entries.try_emplace(key, key);
        if (!is_new) {
            ++hits;
            machine.touch(it->second);
            continue;
        }
        machine.insert(it->second);
        while (eviction_entry* const victim = machine.next_victim())
            entries.erase(static_cast<entry*>(victim)->key);
    }
    machine.clear([](eviction_entry&) noexcept {});
    return percent(hits, t);
}

// W-TinyLFU with a window of 1%, a main space of which 80% is protected, and exact frequencies up
// to 15, which are halved after each 10 accesses for each entry.
class fixed_window_cache {
public:
    explicit fixed_window_cache(std::size_t size)
        : size_(size), max_window_(std::max<std::size_t>(size / 100, 1)),
          max_protected_((size - max_window_) * 8 / 10)
    {
    }

    // Returns whether it is a hit.
    bool access(std::uint64_t key)
    {
        count(key);
        const auto it = places_.find(key);
        if (it == places_.end()) {
            insert(key);
            return false;
        }
        segment& from = *it->second.first;
        segment& to = &from == &window_ ? window_ : protected_;
        move(it->second, to);
        if (protected_.size() > max_protected_)
            move(places_.at(protected_.back()), probation_);
        return true;
    }

private:
    using segment = std::list<std::uint64_t>;
    using place = std::pair<segment*, segment::iterator>;

    static void move(place& p, segment& to)
    {
        to.splice(to.begin(), *p.first, p.second);
        p.first = &to;
    }
    void count(std::uint64_t key)
    {
        unsigned& n = frequencies_[key];
        n = std::min(n + 1, 15U);
        if (++accesses_ < 10 * size_)
            return;
        accesses_ = 0;
        for (auto& entry : frequencies_)
            entry.second /= 2;
    }
    void insert(std::uint64_t key)
    {
        window_.push_front(key);
        places_[key] = {&window_, window_.begin()};
        if (window_.size() <= max_window_)
            return;
        const std::uint64_t candidate = window_.back();
        move(places_.at(candidate), probation_);
        if (places_.size() <= size_)
            return;
        const std::uint64_t victim =
            probation_.size() > 1 || protected_.empty() ? probation_.back() : protected_.back();
        const bool admitted = frequencies_[candidate] > frequencies_[victim];
        const auto loser = places_.find(admitted ? victim : candidate);
        loser->second.first->erase(loser->second.second);
        places_.erase(loser);
    }

    std::size_t size_;
    std::size_t max_window_;
    std::size_t max_protected_;
    std::uint64_t accesses_ = 0;
    segment window_;
    segment probation_;
    segment protected_;
    std::unordered_map<std::uint64_t, place> places_;
    std::unordered_map<std::uint64_t, unsigned> frequencies_;
};

inline double fixed_window_hit_ratio(const trace& t, std::size_t size)
{
    fixed_window_cache cache(size);
    return percent(static_cast<std::uint64_t>(std::count_if(
                       t.begin(), t.end(), [&](std::uint64_t key) { return cache.access(key); })),
                   t);
}

// Belady's optimum: the victim is the key whose next access is the last.
inline double optimal_hit_ratio(const trace& t, std::size_t size)
{
    std::vector<std::size_t> next(t.size());
    std::unordered_map<std::uint64_t, std::size_t> seen;
    for (std::size_t i = t.size(); i-- != 0;) {
        const auto it = seen.find(t[i]);
        next[i] = it == seen.end() ? t.size() + i : it->second;
        seen[t[i]] = i;
    }
    std::set<std::size_t> cached; // the next accesses of the keys in the cache
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i != t.size(); ++i) {
        hits += cached.erase(i);
        cached.insert(next[i]);
        if (cached.size() > size)
            cached.erase(std::prev(cached.end()));
    }
    return percent(hits, t);
}

} // namespace kit
