// SPDX-License-Identifier: BSL-1.0
// Concurrency limits that adapt to the duration and the outcome of calls: their options, and the
// state machines without I/O or clock. A bulkhead uses them through `bulkhead_options::adaptive`.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/export.hpp>

#include <chrono>
#include <cstdint>
#include <variant>

namespace turnstile::inline v0_1 {

/// Upper bound of concurrency limits, 2^32: every limit is smaller.
inline constexpr std::uint64_t limit_bound = std::uint64_t(1) << 32;

/// A completed call, as an adaptive limit sees it.
struct limit_sample {
    nanoseconds started{};       ///< Start of the call.
    nanoseconds finished{};      ///< Completion of the call.
    std::uint64_t in_flight = 0; ///< Outstanding calls at its completion, this one included.
    bool dropped = false;        ///< Whether it timed out, was refused, or failed under the load.
};

/// Options of an `aimd_machine`. Its constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct aimd_options {
    /// Lower bound of the limit. Must be in [1, `maximum`].
    std::uint64_t minimum = 1;
    /// Upper bound of the limit. Must be less than `limit_bound`.
    std::uint64_t maximum = 1000;
    /// Growth of the limit for each round of calls. Must be positive.
    double increase = 1.0;
    /// Factor by which the limit shrinks after a dropped call. Must be in (0, 1).
    double backoff = 0.9;
    /// A call that takes longer counts as dropped. Must be positive.
    nanoseconds timeout = std::chrono::seconds(5);
};

/// Additive increase, multiplicative decrease: the limit grows by `increase` for each round of
/// calls while at least half of it is used. It shrinks after a dropped call, once for all calls
/// that were outstanding together.
///
/// @par Thread safety
/// None: calls must not overlap.
class TURNSTILE_EXPORT aimd_machine {
public:
    /// Starts with the limit `initial`, or the nearest value within the bounds.
    explicit aimd_machine(const aimd_options& options, std::uint64_t initial = 20);

    /// Returns whether all options keep their rules.
    [[nodiscard]] static bool valid(const aimd_options& options) noexcept;

    /// Learns from a completed call. Returns the new limit.
    std::uint64_t update(const limit_sample& sample) noexcept;
    /// The current limit.
    [[nodiscard]] std::uint64_t limit() const noexcept
    {
        return static_cast<std::uint64_t>(limit_);
    }

private:
    aimd_options options_;
    double limit_;
    nanoseconds last_decrease_ = nanoseconds::min();
};

/// Options of a `gradient_machine`. Its constructor checks them, and throws `system_error` with
/// `errc::invalid_argument` and a text that names the member.
struct gradient_options {
    /// Lower bound of the limit. Must be in [1, `maximum`].
    std::uint64_t minimum = 1;
    /// Upper bound of the limit. Must be less than `limit_bound`.
    std::uint64_t maximum = 1000;
    /// Multiple of the usual latency up to which the limit does not shrink. Must be 1 or more.
    double tolerance = 1.5;
    /// Share of each new estimate in the limit. Must be in (0, 1].
    double smoothing = 0.2;
    /// Calls admitted beyond the estimate, to detect whether the service can take more. Must not
    /// be negative.
    double head_room = 4.0;
    /// Number of rounds of calls over which the usual latency is averaged. Must not be 0.
    std::uint32_t window = 600;
};

/// Compares the latency of each round of calls with the usual latency. While they agree, the limit
/// grows by the head room. If calls take longer, it shrinks in proportion, by at most half at a
/// time. No call needs to fail first; a dropped call counts as one that took too long. A round is
/// half as many calls as the limit allows, all started after the limit last changed.
///
/// @par Thread safety
/// None: calls must not overlap.
class TURNSTILE_EXPORT gradient_machine {
public:
    /// Starts with the limit `initial`, or the nearest value within the bounds.
    explicit gradient_machine(const gradient_options& options, std::uint64_t initial = 20);

    /// Returns whether all options keep their rules.
    [[nodiscard]] static bool valid(const gradient_options& options) noexcept;

    /// Learns from a completed call. Returns the new limit.
    std::uint64_t update(const limit_sample& sample) noexcept;
    /// The current limit.
    [[nodiscard]] std::uint64_t limit() const noexcept
    {
        return static_cast<std::uint64_t>(limit_);
    }
    /// The current estimate of the usual latency.
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
    double latencies_ = 0; // sum over this round
    std::uint64_t calls_ = 0;
    bool is_used_ = false;
};

/// A limit that does not adapt.
struct fixed_limit {};

/// The kind of a limit, and its options.
using limit_options = std::variant<fixed_limit, aimd_options, gradient_options>;

namespace detail {

// The limit of a bulkhead: a number, or one of the machines above.
class TURNSTILE_EXPORT limit_machine {
public:
    limit_machine(const limit_options& options, std::uint64_t initial);

    bool is_adaptive() const noexcept { return !std::holds_alternative<std::uint64_t>(limit_); }
    std::uint64_t limit() const noexcept;
    std::uint64_t update(const limit_sample& sample) noexcept;

private:
    std::variant<std::uint64_t, aimd_machine, gradient_machine> limit_;
};

} // namespace detail
} // namespace turnstile::inline v0_1
