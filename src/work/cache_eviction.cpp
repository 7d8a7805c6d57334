// SPDX-License-Identifier: BSL-1.0
#include <turnstile/work/detail/cache_eviction.hpp>

#include <algorithm>

namespace turnstile::inline v0_1::detail {
namespace {

constexpr std::uint64_t max_total = std::uint64_t(1) << 62;

// A sample is that many accesses for each entry.
constexpr std::uint64_t accesses_of_sample = 1;
constexpr unsigned samples_of_age = 10;
constexpr std::size_t min_entries_of_sample = 16;

constexpr double protected_share = 0.8;
// The part of the cache that is observed on either side of the limit of the window.
constexpr std::uint64_t depth_divisor = 8;

// How many entries one call moves at most to adapt a segment to its limit.
constexpr int moves_of_call = 4;

// A candidate that is not used more often than the victim is admitted nevertheless if it is used
// that often, with a probability of 1 in 128.
constexpr unsigned often = 6;
constexpr std::uint64_t jitter_mask = 127;

unsigned one_more(unsigned frequency) noexcept
{
    return std::min(frequency + 1, frequency_sketch::max_frequency);
}

std::uint64_t part_of(std::uint64_t whole, double share) noexcept
{
    return static_cast<std::uint64_t>(static_cast<double>(whole) * share);
}

} // namespace

cache_eviction::cache_eviction(eviction_policy policy, std::uint64_t max_weight,
                               std::uint64_t seed) noexcept
    : random_(seed), seed_(random_.next()), policy_(policy)
{
    resize(max_weight);
}

void cache_eviction::resize(std::uint64_t max_weight) noexcept
{
    max_weight_ = std::min(max_weight, max_total / 2);
    depth_ = std::max<std::uint64_t>(max_weight_ / depth_divisor, 1);
    history_.set_depth(depth_);
    divide();
}

// Divides the maximum among the segments.
void cache_eviction::divide() noexcept
{
    max_window_ = max_weight_;
    if (policy_ != eviction_policy::lru) {
        const std::uint64_t share = part_of(max_weight_, climber_.share());
        max_window_ = std::min(std::max<std::uint64_t>(share, 1), max_weight_);
    }
    max_protected_ = part_of(max_main(), protected_share);
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
    e.state_.segment = entry::untracked;
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
        return link(e, entry::weightless);
    if (e.weight() > max_weight_ || e.weight() > max_total - weight())
        return link(e, entry::condemned);
    link(e, entry::window);
    // An entry that fills the window alone must not displace all others from it.
    if (e.weight() > max_window_)
        in(entry::window)
            .entries.splice(in(entry::window).entries.end(), in(entry::window).entries,
                            in(entry::window).entries.iterator_to(e));
}

void cache_eviction::insert(eviction_entry& e) noexcept
{
    unsigned before = 0;
    if (policy_ != eviction_policy::lru) {
        reserve();
        const std::uint64_t key = mixed(e.hash());
        before = sketch_.estimate(key);
        if (history_.take(key))
            climber_.count_gain();
    }
    set_frequency(e, one_more(before));
    place(e);
    count_access();
}

void cache_eviction::touch(eviction_entry& e) noexcept
{
    set_frequency(e, one_more(frequency(e)));
    if (e.state_.segment == entry::eldest || e.state_.segment == entry::probation) {
        if (e.state_.segment == entry::eldest)
            climber_.count_loss();
        move(e, entry::protect);
        settle_main();
    } else {
        segment_list& s = list_of(e);
        s.entries.splice(s.entries.begin(), s.entries, s.entries.iterator_to(e));
    }
    count_access();
}

void cache_eviction::record_miss(std::uint64_t hash) noexcept
{
    if (policy_ == eviction_policy::lru)
        return;
    const std::uint64_t key = mixed(hash);
    sketch_.raise(key, one_more(sketch_.estimate(key)));
    count_access();
}

void cache_eviction::reweigh(eviction_entry& e, std::uint64_t weight) noexcept
{
    const bool was_counted =
        e.state_.segment != entry::weightless && e.state_.segment != entry::condemned;
    segment_list& s = list_of(e);
    s.weight -= e.weight();
    e.set_weight(weight);
    const bool is_counted =
        e.weight() != 0 && e.weight() <= max_weight_ && e.weight() <= max_total - this->weight();
    s.weight += e.weight();
    if (was_counted && is_counted)
        return; // it keeps its place
    unlink(e);
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
    if (!in(entry::condemned).entries.empty())
        return remove(in(entry::condemned).entries.back());
    settle_window();
    settle_main();
    if (weight() <= max_weight_)
        return nullptr;
    eviction_entry* const victim = oldest_of_main();
    if (victim && (in(entry::window).weight <= max_window_ ||
                   admits(in(entry::window).entries.back(), *victim)))
        return remove(*victim);
    eviction_entry& candidate = in(entry::window).entries.back();
    if (policy_ != eviction_policy::lru)
        history_.record(mixed(candidate.hash()), candidate.weight());
    return remove(candidate);
}

eviction_entry* cache_eviction::oldest_of_main() noexcept
{
    for (const auto segment : {entry::eldest, entry::probation, entry::protect}) {
        segment_list* const s = &in(segment);
        if (!s->entries.empty())
            return &s->entries.back();
    }
    return nullptr;
}

bool cache_eviction::admits(const eviction_entry& candidate, const eviction_entry& victim) noexcept
{
    const unsigned wanted = frequency(candidate);
    if (wanted > frequency(victim))
        return true;
    // Otherwise an attacker who knows keys with the hash of a victim could keep it forever.
    return wanted >= often && (random_.next() & jitter_mask) == 0;
}

// Moves the oldest entries of the window on while there is room for them in the main space.
void cache_eviction::settle_window() noexcept
{
    for (int i = 0; i != moves_of_call && in(entry::window).weight > max_window_; ++i) {
        eviction_entry& oldest = in(entry::window).entries.back();
        if (main_weight() + oldest.weight() > max_main())
            break;
        move(oldest, entry::probation);
    }
}

void cache_eviction::settle_main() noexcept
{
    for (int i = 0; i != moves_of_call && in(entry::protect).weight > max_protected_; ++i)
        move(in(entry::protect).entries.back(), entry::probation);
    for (int i = 0; i != moves_of_call && in(entry::eldest).weight < depth_; ++i) {
        segment_list& from =
            in(entry::probation).entries.empty() ? in(entry::protect) : in(entry::probation);
        if (from.entries.empty())
            break;
        move(from.entries.back(), entry::eldest);
    }
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

// Keeps pace with the number of entries.
void cache_eviction::reserve() noexcept
{
    const std::size_t entries = counted() + 1;
    if (entries * 2 > sketch_.room())
        sketch_.reserve(entries * 2);
    if (entries / 2 > history_.room())
        history_.reserve(entries / 2);
}

void cache_eviction::end_sample() noexcept
{
    const std::size_t entries = counted();
    const bool is_filling = entries > sample_size_ + sample_size_ / 8;
    sample_size_ = entries;
    accesses_left_ = accesses_of_sample * std::max(entries, min_entries_of_sample);
    if (policy_ == eviction_policy::lru)
        return;
    const double observed = static_cast<double>(std::min(in(entry::eldest).weight, depth_)) /
                            static_cast<double>(depth_);
    climber_.end_sample(std::max(observed, 0.01));
    divide();
    samples_ = is_filling ? 0 : samples_ + 1;
    if (samples_ == samples_of_age) {
        samples_ = 0;
        ++age_;
        sketch_.halve();
    }
}

} // namespace turnstile::inline v0_1::detail
