#pragma once

#include <turnstile/core/detail/permit_gate.hpp>
#include <turnstile/core/detail/wait_state.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace turnstile::detail {

template <class Threading>
class condition_state;

// What a wait on a condition has of its caller: the lock, and perhaps a predicate.
class condition_user {
public:
    virtual void let_go_of_lock() noexcept = 0;
    virtual void adopt_lock() noexcept = 0;
    virtual verdict test() noexcept = 0;

protected:
    condition_user() = default;
    condition_user(const condition_user&) = default;
    condition_user& operator=(const condition_user&) = default;
    ~condition_user() = default;
};

using place_hook =
    boost::intrusive::list_base_hook<boost::intrusive::tag<struct in_order_of_arrival>,
                                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// A wait on a condition. It is first decided by the condition, and is then not yet complete:
// it must have its lock again, for which it queues at the mutex, and the predicate must
// agree; otherwise it goes back to its place. All of that in the memory it started with.
template <class Threading>
class TURNSTILE_EXPORT condition_waiter : public waiter, public place_hook {
public:
    // `complete` is what ends the operation, one way or the other.
    explicit condition_waiter(run_function complete) noexcept
        : waiter(&condition_waiter::run), complete_(complete)
    {
    }

    // `user` belongs to the operation; `mutex` is null where there was no lock at all.
    void bind(condition_user& user, bool has_predicate, condition_state<Threading>& condition,
              permit_gate<Threading>* mutex);
    // Whether it waits for a lock elsewhere, to come back to the condition's executor.
    bool is_abroad() const noexcept { return relock_ && crossing_; }

protected:
    ~condition_waiter() = default;

private:
    friend class condition_state<Threading>;

    // Its place in the mutex's queue.
    struct relock : permit_waiter {
        explicit relock(condition_waiter& w) noexcept : permit_waiter(&relock::run), owner(w) {}
        static void run(waiter& self, how what)
        {
            condition_waiter::run(static_cast<relock&>(self).owner, what);
        }
        condition_waiter& owner;
    };
    // The way back from a mutex whose executor is not the condition's.
    struct crossing {
        crossing(const completion_target& home, condition_waiter& w)
            : way(home, w), work(home.track())
        {
        }
        detour way;
        work_guard work;
    };

    static void run(waiter& self, how what);
    bool queue_for_lock() noexcept;
    bool is_satisfied() noexcept;
    void let_go_of_lock() noexcept;
    void adopt_lock() noexcept;

    run_function complete_;
    condition_user* user_ = nullptr;
    boost::intrusive_ptr<condition_state<Threading>> condition_;
    boost::intrusive_ptr<permit_gate<Threading>> mutex_;
    std::optional<relock> relock_;
    std::optional<crossing> crossing_;
    bool has_predicate_ = false;
    bool is_without_lock_ = false;

    // Guarded by the condition's lock.
    bool placed_ = false;
    bool called_with_all_ = false;
    std::uint64_t ticket_ = 0;  // its number in the order of arrival
    std::uint64_t carried_ = 0; // notifications to use or to pass on
    std::uint64_t horizon_ = 0; // they were given when only tickets below this one were out
};

// Those who wait for a notification, in the order they came.
//
// A notification that is of no use to the waiter it went to, since its predicate says no, goes
// to the next one behind it, who has not seen it; the waiter goes back to its old place. If
// the next is on its way already it takes both, so that nobody is woken twice for them. One
// whose waiter was cancelled goes straight to the next who waits.
template <class Threading>
class TURNSTILE_EXPORT condition_state final : public wait_state<Threading> {
    using waiter_type = condition_waiter<Threading>;

public:
    template <class Executor>
    explicit condition_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // Queues w, and only then releases its mutex.
    void start(waiter_type& w) noexcept;

    void notify(std::size_t n) noexcept
    {
        if (awaited_.load(std::memory_order_acquire))
            notify_awaited(n);
    }
    void notify_all() noexcept
    {
        if (awaited_.load(std::memory_order_acquire))
            notify_all_awaited();
    }

    // w does not use its notification, and if it can, waits again.
    bool wait_again(waiter_type& w) noexcept;
    // w is about to complete, or to be destroyed.
    void leave(waiter_type& w) noexcept;

private:
    using place_list = boost::intrusive::list<waiter_type, boost::intrusive::base_hook<place_hook>,
                                              boost::intrusive::constant_time_size<false>>;

    void notify_awaited(std::size_t n) noexcept;
    void notify_all_awaited() noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list& ready) noexcept override;
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void shut_down() noexcept override;

    static waiter_type& as_own(waiter& w) noexcept { return static_cast<waiter_type&>(w); }
    void call(waiter_type& w, std::uint64_t carried, ready_list& ready) noexcept;
    void pass_on(waiter_type& from, std::uint64_t n, ready_list& ready) noexcept;
    void note_who_waits() noexcept;

    typename Threading::template cell<bool> awaited_{false};
    std::uint64_t arrivals_ = 0;
    place_list places_; // who waits, and who is on its way, in the order of arrival
};

extern template class condition_waiter<thread_safe>;
extern template class condition_waiter<strand_confined>;
extern template class condition_state<thread_safe>;
extern template class condition_state<strand_confined>;

} // namespace turnstile::detail
