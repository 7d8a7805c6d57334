// What a queue does when it is full, in which order it serves, and how it is closed.
#pragma once

namespace turnstile {

/// What becomes of a push that finds no room.
enum class overflow {
    wait,        ///< It waits for room.
    drop_oldest, ///< It enters, and the oldest item is dropped; of `queue` only.
    drop_newest, ///< It succeeds, but its own item is dropped.
    drop_worst,  ///< It enters, and the worst item, maybe itself, is dropped; of `priority_queue`
                 ///< only.
    reject,      ///< It fails with `errc::rejected`.
};

/// Which item of a `queue` is popped first.
enum class order {
    fifo, ///< The oldest.
    lifo, ///< The newest.
};

/// What `close` does with the items that are still there.
enum class closing {
    drain,   ///< They can still be popped.
    discard, ///< They are destroyed.
};

} // namespace turnstile
