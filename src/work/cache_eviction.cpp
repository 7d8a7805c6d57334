// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/cache_eviction.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr std::uint64_t max_total = std::uint64_t(1) << 62;
constexpr std::uint64_t sample_per_entry = 10;
constexpr std::uint64_t aging_per_entry = 10;
// How many entries one call moves at most to adapt the segments to new limits.
constexpr int moves_per_call = 4;
constexpr double protected_share = 0.8;
constexpr unsigned jitter_above = 5;
constexpr std::uint64_t jitter_mask = 127;

} // namespace

cache_eviction::cache_eviction(eviction_policy policy, std::uint64_t max_weight,
                               std::uint64_t seed) noexcept
    : max_weight_(std::min(max_weight, max_total / 2)), random_(seed), seed_(random_.next()),
      policy_(policy)
{
    divide();
}

cache_eviction::segment_list& cache_eviction::list_of(const eviction_entry& e) noexcept
{
    switch (e.state_.segment) {
    case eviction_entry::window:
        return window_;
    case eviction_entry::probation:
        return probation_;
    case eviction_entry::protect:
        return protected_;
    case eviction_entry::weightless:
        return weightless_;
    default:
        return condemned_;
    }
}

// Makes it the most recently used entry of the segment.
void cache_eviction::link(eviction_entry& e, unsigned segment) noexcept
{
    e.state_.segment = segment & 7U;
    segment_list& s = list_of(e);
    s.entries.push_front(e);
    s.weight += e.weight();
}

void cache_eviction::unlink(eviction_entry& e) noexcept
{
    segment_list& s = list_of(e);
    s.entries.erase(s.entries.iterator_to(e));
    s.weight -= e.weight();
    e.state_.segment = eviction_entry::untracked;
}

void cache_eviction::move(eviction_entry& e, unsigned segment) noexcept
{
    unlink(e);
    link(e, segment);
}

// Links an entry that is new, or whose weight has changed.
void cache_eviction::place(eviction_entry& e) noexcept
{
    if (e.weight() == 0)
        return link(e, eviction_entry::weightless);
    if (e.weight() > max_weight_ || e.weight() > max_total - weight())
        return link(e, eviction_entry::condemned);
    link(e, eviction_entry::window);
    // An entry that fills the window alone must not displace all others from it.
    if (e.weight() > max_window_)
        window_.entries.splice(window_.entries.end(), window_.entries,
                               window_.entries.iterator_to(e));
}

void cache_eviction::insert(eviction_entry& e) noexcept
{
    unsigned before = 0;
    if (policy_ != eviction_policy::lru) {
        const std::size_t tracked = counted() + 1;
        if (tracked > sketch_.room())
            sketch_.reserve(tracked);
        before = sketch_.estimate(mixed(e.hash()));
    }
    set_frequency(e, std::min(before + 1, frequency_sketch::max_frequency));
    place(e);
    count_access();
}

void cache_eviction::touch(eviction_entry& e) noexcept
{
    segment_list& s = list_of(e);
    set_frequency(e, std::min(frequency(e) + 1, frequency_sketch::max_frequency));
    if (e.state_.segment == eviction_entry::probation) {
        move(e, eviction_entry::protect);
        limit_protected();
    } else {
        s.entries.splice(s.entries.begin(), s.entries, s.entries.iterator_to(e));
    }
    ++hits_;
    count_access();
}

void cache_eviction::record_miss(std::uint64_t hash) noexcept
{
    if (policy_ == eviction_policy::lru)
        return;
    const std::uint64_t key = mixed(hash);
    sketch_.raise(key, std::min(sketch_.estimate(key) + 1, frequency_sketch::max_frequency));
    count_access();
}

void cache_eviction::reweigh(eviction_entry& e, std::uint64_t weight) noexcept
{
    unlink(e);
    e.set_weight(weight);
    place(e);
}

void cache_eviction::erase(eviction_entry& e) noexcept { remove(e); }

eviction_entry* cache_eviction::remove(eviction_entry& e) noexcept
{
    unlink(e);
    if (policy_ != eviction_policy::lru)
        sketch_.raise(mixed(e.hash()), frequency(e));
    return &e;
}

eviction_entry* cache_eviction::next_victim() noexcept
{
    if (!condemned_.entries.empty())
        return remove(condemned_.entries.back());
    settle();
    if (weight() <= max_weight_)
        return nullptr;
    const bool main_is_empty = main_weight() == 0;
    if (main_is_empty)
        return remove(window_.entries.back());
    eviction_entry& victim = oldest_of_main();
    if (window_.weight <= max_window_)
        return remove(victim);
    eviction_entry& candidate = window_.entries.back();
    return remove(admits(candidate, victim) ? victim : candidate);
}

void cache_eviction::resize(std::uint64_t max_weight) noexcept
{
    max_weight_ = std::min(max_weight, max_total / 2);
    divide();
}

eviction_entry& cache_eviction::oldest_of_main() noexcept
{
    return probation_.entries.empty() ? protected_.entries.back() : probation_.entries.back();
}

bool cache_eviction::admits(const eviction_entry& candidate, const eviction_entry& victim) noexcept
{
    const unsigned ours = frequency(candidate);
    if (ours > frequency(victim))
        return true;
    // Keys of an attacker could all have the largest frequency.
    return ours > jitter_above && (random_.next() & jitter_mask) == 0;
}

// The oldest entries of the window move on while there is room for them in the main space.
void cache_eviction::settle() noexcept
{
    for (int i = 0; i != moves_per_call && window_.weight > max_window_; ++i) {
        eviction_entry& oldest = window_.entries.back();
        if (main_weight() + oldest.weight() > max_main())
            break;
        move(oldest, eviction_entry::probation);
    }
    limit_protected();
}

void cache_eviction::limit_protected() noexcept
{
    for (int i = 0; i != moves_per_call && protected_.weight > max_protected_; ++i)
        move(protected_.entries.back(), eviction_entry::probation);
}

unsigned cache_eviction::frequency(const eviction_entry& e) const noexcept
{
    const auto halvings = static_cast<std::uint8_t>(age_ - static_cast<std::uint8_t>(e.state_.age));
    return halvings < 4 ? static_cast<unsigned>(e.state_.frequency) >> halvings : 0;
}

void cache_eviction::set_frequency(eviction_entry& e, unsigned frequency) noexcept
{
    e.state_.frequency = frequency & 15U;
    e.state_.age = age_;
}

std::uint64_t cache_eviction::mixed(std::uint64_t hash) const noexcept
{
    return random_source(hash ^ seed_).next();
}

void cache_eviction::count_access() noexcept
{
    if (++sampled_ >= accesses_left_)
        end_sample();
}

void cache_eviction::end_sample() noexcept
{
    if (policy_ == eviction_policy::lru)
        return;
    climber_.end_sample(static_cast<double>(hits_) / static_cast<double>(sampled_));
    divide();
    hits_ = 0;
    sampled_ = 0;
    accesses_left_ = sample_per_entry * std::max<std::size_t>(counted(), 16);
    ++age_;
    sketch_.halve();
}

// Divides the maximum among the segments.
void cache_eviction::divide() noexcept
{
    if (policy_ == eviction_policy::lru) {
        max_window_ = max_weight_;
        max_protected_ = 0;
        return;
    }
    const auto part = [](std::uint64_t whole, double share) {
        return static_cast<std::uint64_t>(static_cast<double>(whole) * share);
    };
    max_window_ =
        std::min(max_weight_, std::max<std::uint64_t>(part(max_weight_, climber_.share()), 1));
    max_protected_ = part(max_main(), protected_share);
}

} // namespace turnstile::inline v0_1::detail
