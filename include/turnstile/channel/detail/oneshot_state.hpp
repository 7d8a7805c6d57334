// SPDX-License-Identifier: BSL-1.0
// The state of a oneshot, which its sender and its receiver share. oneshot_state does not depend on
// the type of the value; typed_oneshot_state, below, holds the value.
//
// The phase is the progress of the value:
// - open: nothing was sent, and the sender exists
// - full: a value was sent and is available
// - reserved: the value is granted to a receive that has not completed; if that receive is
//   cancelled, the phase is full again
// - failed: an error was sent; every receive completes with it
// - sender_gone: the sender was destroyed without sending
// - taken: a receive has the value, or the receiver was destroyed with it
//
// A granted receive takes the value when it completes, so a cancelled one leaves it in place. All
// members are guarded by the lock.
#pragma once

#include <turnstile/detail/util/recycled_memory.hpp>
#include <turnstile/detail/wait/wait_state.hpp>
#include <turnstile/detail/wait/waiter.hpp>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace turnstile::inline v0_1::detail {

struct oneshot_waiter : waiter {
    using waiter::waiter;
    bool is_at_sender = false; // waits for the end of the receiver; otherwise for the value
};

template <class Threading>
class TURNSTILE_EXPORT oneshot_state : public wait_state<Threading> {
public:
    using threading_policy = Threading;

    template <class Executor>
    explicit oneshot_state(const Executor& executor) : wait_state<Threading>(executor)
    {
    }

    // The sender.
    error_code can_send() noexcept;
    error_code send_error(const error_code& error) noexcept;
    void leave_sender() noexcept;
    // Granted if the receiver is closed or destroyed.
    wait_decision receiver_gone() noexcept;
    // The result of a granted wait for that.
    error_code conclude_receiver_gone() noexcept;
    std::size_t waiting_at_sender() noexcept;

    // The receiver. peek() is the decision that a receive would get; reserve() also reserves the
    // value, and give_back() undoes that.
    wait_decision peek() noexcept;
    wait_decision reserve() noexcept;
    void give_back() noexcept;
    void close() noexcept;
    std::size_t waiting_at_receiver() noexcept;

protected:
    // All functions below are called under the lock.

    wait_decision send_decision() const noexcept;
    // The value was stored: grants the first receive.
    void offer_value(ready_list& ready) noexcept;
    // Completes a granted receive. If there is no error, the caller takes the value.
    error_code conclude_receive(ready_list& ready) noexcept;
    // The receiver is being destroyed. Returns whether a value is left, which the caller drops.
    bool drop_receiver(ready_list& ready) noexcept;

private:
    enum class phase : unsigned char { open, full, reserved, failed, sender_gone, taken };

    wait_decision receive_decision() const noexcept;
    wait_decision reserve_locked() noexcept;
    void unreserve(ready_list& ready) noexcept;
    void close_receiver(ready_list& ready) noexcept;
    // Ends all waits of the sender.
    template <class Decide>
    void decide_sender_waits(ready_list& ready, Decide decide) noexcept;

    bool admit(waiter& w) noexcept override;
    void remove(waiter& w) noexcept override;
    void reconsider(ready_list&) noexcept override {}
    void take_back(waiter& w, ready_list& ready) noexcept override;
    void take_all(waiter_list& out) noexcept override;

    phase phase_ = phase::open;
    bool sender_alive_ = true;
    bool receiver_alive_ = true;
    bool receiver_open_ = true; // false after close() or the destruction of the receiver
    error_code error_;
    waiter_list sender_queue_;     // waits of the sender; receives are in queue_
    std::size_t sender_waits_ = 0; // the size of sender_queue_
};

extern template class oneshot_state<thread_safe>;
extern template class oneshot_state<strand_confined>;

// Moving the value cannot throw, so it is moved under the lock. A moved-from value is destroyed
// with the state.
template <class T, class Threading>
class typed_oneshot_state final : public oneshot_state<Threading>,
                                  public recycled_memory<typed_oneshot_state<T, Threading>> {
public:
    using stored_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

    using oneshot_state<Threading>::oneshot_state;

    // After an error, `value` has not been moved from.
    error_code send(stored_type& value) noexcept
    {
        return this->update([&](ready_list& ready) {
            const wait_decision decision = this->send_decision();
            if (decision.is_granted()) {
                value_.emplace(std::move(value));
                this->offer_value(ready);
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
        std::optional<stored_type> dropped; // destroyed without the lock
        this->update([&](ready_list& ready) {
            if (this->drop_receiver(ready))
                dropped.emplace(std::move(*value_));
        });
    }

private:
    std::optional<stored_type> value_;
};

} // namespace turnstile::inline v0_1::detail
