// SPDX-License-Identifier: BSL-1.0
// Listeners: functions that an object calls when an event happens to it. This header has the type
// that identifies a listener, and the guarantees that hold for the listeners of every component.
#pragma once

#include <cstdint>

namespace turnstile::inline v0_1 {

/// Identifies a listener of one object. `add_listener(f)` returns it, and `remove_listener(id)`
/// takes it; `remove_listener` returns false if `id` is not registered. An object never uses the
/// same value twice.
///
/// Every component that has events offers the same three functions, `add_listener`,
/// `remove_listener` and `dropped_events`, and gives the same guarantees:
///
/// @par Order
/// The listeners of an object are called one at a time, never one inside another. Each event
/// reaches the listeners in the order in which they were added, and the events follow each other in
/// the order in which they happened, even if several threads cause them. A new listener receives
/// the events that happen after it was added.
///
/// @par Thread
/// A listener runs on the thread that caused the event, or on one that is already dispatching
/// events of the same object. No lock is held while it runs.
///
/// @par Allowed calls
/// A listener may call the object, and may add and remove listeners, itself included. An event that
/// a listener causes is dispatched after the listener has returned. A listener may destroy the
/// object, unless an `async_` function of the object has caused the event. After the object is
/// destroyed no listener is called.
///
/// @par Removal
/// A listener is not called after it was removed. If another thread is running it at that moment,
/// `remove_listener` does not wait until it returns.
///
/// @par Exceptions
/// An exception that a listener throws is dropped. The other listeners receive the event.
///
/// @par Dropped events
/// Events are kept until they are dispatched, up to a limit: while one thread dispatches, further
/// calls add no more than 4096 events. Events above the limit, and events for which there is no
/// memory, are dropped, so a slow listener loses events. `dropped_events()` returns their number.
enum class listener_id : std::uint64_t {};

} // namespace turnstile::inline v0_1
