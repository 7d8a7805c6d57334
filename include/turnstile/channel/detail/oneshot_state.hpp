// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <turnstile/channel/detail/recycled.hpp>
#include <turnstile/detail/wait/wait_decision.hpp>
#include <turnstile/detail/wait/wait_outcome.hpp>
#include <turnstile/detail/wait/wait_state.hpp>

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

struct oneshot_waiter : waiter {
    using waiter::waiter;
    bool for_receiver_gone = false; // on the sender's side; else for the value
};

// What one end of a oneshot has done, and who waits for it; the value itself is in the block
// that derives from this. All of it is guarded by the lock.
//
// A granted receive has the value reserved, and takes it when it is delivered; a cancelled
// one has thus left it where it is.
template <class Threading>
class TURNSTILE_EXPORT oneshot_state : public wait_state<Threading> {
public:
    using threading_policy = Threading;

    template <class Executor>
    explicit oneshot_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // The sender's side.
    error_code can_send() noexcept;
    error_code send_error(const error_code& error) noexcept;
    void leave_sender() noexcept;
    // Whether the receiver has gone, or closed; and what a wait for that comes to.
    wait_decision is_unwanted() noexcept;
    error_code conclude_unwanted() noexcept;

    // The receiver's side. What a receive would come to now; reserve() sees to it, if that is
    // a value, that nobody else gets it.
    wait_decision look() noexcept;
    wait_decision reserve() noexcept;
    void give_back() noexcept;
    void close() noexcept;

protected:
    // Under the lock.
    wait_decision sending() const noexcept;
    void filled(ready_list& ready) noexcept;
    // What becomes of a granted receive; without an error it takes the value.
    error_code conclude_receive(ready_list& ready) noexcept;
    // Whether there is a value that nobody will take.
    bool drop_receiver(ready_list& ready) noexcept;

private:
    enum class phase : unsigned char { open, full, reserved, failed, sender_gone, taken };

    wait_decision receiving() const noexcept;
    wait_decision reserve_locked() noexcept;
    void unreserve(ready_list& ready) noexcept;
    void offer(ready_list& ready) noexcept;
    void stop_wanting(ready_list& ready) noexcept;

    bool admit(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    phase phase_ = phase::open;
    bool sender_alive_ = true;
    bool receiver_alive_ = true;
    bool wanted_ = true; // the receiver has neither closed nor gone
    error_code error_;
    waiter_list unwanted_queue_; // on the sender's side; receives are in queue_
};

extern template class oneshot_state<thread_safe>;
extern template class oneshot_state<strand_confined>;

// With the value. Moving it does not throw, and so may happen under the lock; what is left of
// it there goes with the block.
template <class T, class Threading>
class oneshot_block final : public oneshot_state<Threading>,
                            public recycled<oneshot_block<T, Threading>> {
public:
    using stored_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

    using oneshot_state<Threading>::oneshot_state;

    // The value has not been moved from if there is an error.
    error_code send(stored_type& value) noexcept
    {
        return this->update([&](ready_list& ready) {
            const wait_decision decision = this->sending();
            if (decision.is_granted()) {
                value_.emplace(std::move(value));
                this->filled(ready);
            }
            return decision.error();
        });
    }

    wait_outcome<T> conclude() noexcept
    {
        std::optional<stored_type> taken;
        wait_outcome<T> result;
        this->update([&](ready_list& ready) {
            result.error = this->conclude_receive(ready);
            if (!result.error)
                taken.emplace(std::move(*value_));
        });
        if constexpr (!std::is_void_v<T>) {
            if (taken)
                result.value = std::move(*taken);
        }
        return result;
    }

    void leave_receiver() noexcept
    {
        std::optional<stored_type> dropped;
        this->update([&](ready_list& ready) {
            if (this->drop_receiver(ready))
                dropped.emplace(std::move(*value_));
        });
    }

private:
    std::optional<stored_type> value_;
};

} // namespace turnstile::inline v0_1::detail
