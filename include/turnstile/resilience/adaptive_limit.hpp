// SPDX-License-Identifier: BSL-1.0
// Limits on concurrency that find their own size, from how long calls take and how they end.
// State machines without I/O or clock; bulkhead.hpp uses them.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>

#include <chrono>
#include <cstdint>
#include <variant>

namespace turnstile::inline v0_1 {

/// Limits on concurrency are smaller than this: 2^32.
inline constexpr std::uint64_t limit_bound = std::uint64_t(1) << 32;

/// One finished call, as an adaptive limit wants to know it.
struct limit_sample {
    nanoseconds started{};
    nanoseconds finished{};
    std::uint64_t in_flight = 0; ///< How many calls were out when it finished, itself included.
    bool dropped = false;        ///< It timed out, was refused, or failed under the load.
};

/// How an `aimd_limit` moves. Checked when one is made: `errc::invalid_argument` for bounds
/// of zero, of `limit_bound` and more, or in the wrong order, a backoff outside (0, 1), an increase
/// or a timeout that is not positive.
struct aimd_options {
    std::uint64_t minimum = 1;
    std::uint64_t maximum = 1000;
    /// What is added in one round of calls.
    double increase = 1.0;
    /// What it is multiplied by when a call was dropped.
    double backoff = 0.9;
    /// A call that takes longer counts as dropped.
    nanoseconds timeout = std::chrono::seconds(5);
};

/// Additive increase, multiplicative decrease: grows by `increase` for each round of calls
/// as long as the limit is used at least by half, and shrinks when a call is dropped, once
/// for all that were out at the time.
class TURNSTILE_EXPORT aimd_limit {
public:
    /// Starts from `initial`, or the nearest number within the bounds.
    explicit aimd_limit(const aimd_options& options, std::uint64_t initial = 20);

    [[nodiscard]] static bool valid(const aimd_options& options) noexcept;

    /// Learns from a call; the limit from now on.
    std::uint64_t update(const limit_sample& sample) noexcept;
    [[nodiscard]] std::uint64_t limit() const noexcept
    {
        return static_cast<std::uint64_t>(limit_);
    }

private:
    aimd_options options_;
    double limit_;
    nanoseconds last_decrease_ = nanoseconds::min();
};

/// How a `gradient_limit` moves. Checked when one is made: `errc::invalid_argument` for bounds
/// of zero, of `limit_bound` and more, or in the wrong order, a tolerance under 1, a smoothing
/// outside (0, 1], a negative head room or a zero window.
struct gradient_options {
    std::uint64_t minimum = 1;
    std::uint64_t maximum = 1000;
    /// How many times the usual latency is still fine.
    double tolerance = 1.5;
    /// How much of each new estimate is taken over.
    double smoothing = 0.2;
    /// How many more calls than seem to fit are let in, to find out whether they do.
    double head_room = 4.0;
    /// Over how many rounds of calls the usual latency is averaged.
    std::uint32_t window = 600;
};

/// Compares the latency of a round of calls with the usual one: while they agree the limit
/// grows by the head room, and when calls take longer it shrinks in proportion, at most by half
/// at a time. Nothing needs to fail first; a dropped call counts as one that took too long. A
/// round is half as many calls as the limit allows, all started since it last moved.
class TURNSTILE_EXPORT gradient_limit {
public:
    /// Starts from `initial`, or the nearest number within the bounds.
    explicit gradient_limit(const gradient_options& options, std::uint64_t initial = 20);

    [[nodiscard]] static bool valid(const gradient_options& options) noexcept;

    /// Learns from a call; the limit from now on.
    std::uint64_t update(const limit_sample& sample) noexcept;
    [[nodiscard]] std::uint64_t limit() const noexcept
    {
        return static_cast<std::uint64_t>(limit_);
    }
    /// What it takes for the usual latency.
    [[nodiscard]] nanoseconds usual_latency() const noexcept;

private:
    void learn_usual(double latency) noexcept;
    void move_by(double gradient, double head_room) noexcept;
    void begin_round(nanoseconds now) noexcept;

    gradient_options options_;
    double limit_;
    double usual_ = 0; // in nanoseconds
    std::uint32_t learned_ = 0;

    nanoseconds round_started_ = nanoseconds::min();
    double latencies_ = 0; // of this round, added up
    std::uint64_t calls_ = 0;
    bool is_used_ = false;
};

/// The limit stays as it is.
struct fixed_limit {};

/// Which kind of limit.
using limit_options = std::variant<fixed_limit, aimd_options, gradient_options>;

namespace detail {

// A limit of the kind that was chosen.
class TURNSTILE_EXPORT any_limit {
public:
    any_limit(const limit_options& options, std::uint64_t initial);

    bool is_adaptive() const noexcept { return !std::holds_alternative<std::uint64_t>(limit_); }
    std::uint64_t limit() const noexcept;
    std::uint64_t update(const limit_sample& sample) noexcept;

private:
    std::variant<std::uint64_t, aimd_limit, gradient_limit> limit_;
};

} // namespace detail
} // namespace turnstile::inline v0_1
