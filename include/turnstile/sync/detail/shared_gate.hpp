#pragma once

#include <turnstile/core/detail/verdict.hpp>
#include <turnstile/core/detail/wait_state.hpp>
#include <turnstile/core/export.hpp>

#include <cstdint>

namespace turnstile {

/// Who goes first where readers and writers wait for the same `shared_mutex`.
enum class lock_preference : unsigned char {
    fair,           ///< Whoever came first.
    prefer_readers, ///< Readers, whether a writer waits or not: it may wait for ever.
    prefer_writers, ///< Writers, however long readers have waited: they may wait for ever.
};

namespace detail {

// The ways to hold a shared_gate.
enum class hold : unsigned char { nothing, shared, upgradable, exclusive };

// Waits to exchange what it has, usually nothing, for what it wants.
struct shared_waiter : waiter {
    using waiter::waiter;
    hold has = hold::nothing;
    hold wants = hold::shared;
    std::uint64_t ticket = 0; // its number in the order of arrival
};

// Any number of readers, and beside them one who may upgrade; or one writer.
//
// One word holds all of that and a flag. While nobody waits it changes by compare-and-swap;
// while `contended` is set, only under the lock, and every fast path stands back.
template <class Threading>
class TURNSTILE_EXPORT shared_gate final : public wait_state<Threading> {
    using word_type = std::uint64_t;

public:
    template <class Executor>
    shared_gate(const Executor& executor, lock_preference preference)
        : wait_state<Threading>(executor), preference_(preference)
    {
    }

    lock_preference preference() const noexcept { return preference_; }
    bool is_held(hold how) const noexcept
    {
        return holds(word_.load(std::memory_order_acquire), how);
    }

    // Takes what it wants for what it has, if that needs no waiting.
    TURNSTILE_HOT bool try_take(hold has, hold wants) noexcept
    {
        return word_.update(quick_exchange{has, wants}, std::memory_order_acquire) ||
               (overlooks_waiters(has, wants) && try_contended(wants));
    }

    // Gives what it has for something less; false, and no change, if nobody holds that.
    TURNSTILE_HOT bool give(hold has, hold keeps = hold::nothing) noexcept
    {
        return word_.update(quick_exchange{has, keeps}, std::memory_order_release) ||
               give_contended(has, keeps);
    }

private:
    static constexpr word_type contended = 1;
    static constexpr word_type writer = 2;
    static constexpr word_type upgrader = 4;
    static constexpr word_type reader = 8; // how many of them: from this bit on

    static constexpr word_type part(hold h) noexcept
    {
        switch (h) {
        case hold::shared:
            return reader;
        case hold::upgradable:
            return upgrader;
        case hold::exclusive:
            return writer;
        case hold::nothing:
            break;
        }
        return 0;
    }
    static constexpr word_type with(word_type word, hold h) noexcept { return word + part(h); }
    static constexpr word_type without(word_type word, hold h) noexcept { return word - part(h); }
    static constexpr bool holds(word_type word, hold h) noexcept
    {
        return h == hold::shared ? word >= reader : (word & part(h)) == part(h);
    }
    static constexpr bool is_free_for(word_type held, hold wanted) noexcept
    {
        switch (wanted) {
        case hold::nothing:
            return true;
        case hold::shared:
            return (held & writer) == 0;
        case hold::upgradable:
            return (held & (writer | upgrader)) == 0;
        default:
            return held == 0;
        }
    }

    // What is done to the word without the lock, if nobody waits. A struct, since what a lambda has
    // captured is not inlined.
    struct quick_exchange {
        hold has;
        hold wants;

        TURNSTILE_HOT bool operator()(word_type& word) const noexcept
        {
            if ((word & contended) || !holds(word, has) || !is_free_for(without(word, has), wants))
                return false;
            word = with(without(word, has), wants);
            return true;
        }
    };

    bool overlooks_waiters(hold has, hold wants) const noexcept
    {
        return preference_ == lock_preference::prefer_readers && has == hold::nothing &&
               wants != hold::exclusive;
    }

    bool try_contended(hold wants) noexcept;
    bool give_contended(hold has, hold keeps) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    word_type contend() noexcept;
    waiter_list& line_of(const shared_waiter& w) noexcept;
    bool has_queued() const noexcept;
    shared_waiter* next(word_type held) noexcept;
    template <class Decided>
    void serve_with(word_type held, Decided decided) noexcept;
    void serve(word_type held, ready_list& ready) noexcept;
    bool give_locked(hold has, hold keeps, ready_list& ready) noexcept;

    typename Threading::template cell<word_type> word_{0};
    const lock_preference preference_;
    std::uint64_t arrivals_ = 0;
    waiter_list readers_;
    waiter_list upgraders_; // who wait for an upgradable lock
    waiter_list upgrade_;   // who waits to upgrade: one at most
    // Writers are in queue_.
};

extern template class shared_gate<thread_safe>;
extern template class shared_gate<strand_confined>;

} // namespace detail
} // namespace turnstile
