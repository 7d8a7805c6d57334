// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/buffer_allocator.hpp>
#include <turnstile/detail/post/posting_executor.hpp>

#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>

#include <type_traits>
#include <utility>

namespace turnstile::inline v0_1::detail {
namespace {

namespace execution = asio::execution;

// What is being handed to an executor right now, and whether the executor let it drop: by
// throwing, or in silence. Then it stays the caller's.
struct hand_over {
    const intrusive_task* what = nullptr;
    bool dropped = false;
};
constinit thread_local hand_over current;

// The function object an executor queues. It owns what it stands for: an executor that drops
// it later without running it (its context is shutting down) destroys the operation.
class posted {
public:
    explicit posted(intrusive_task& p) noexcept : what_(&p) {}
    posted(posted&& other) noexcept : what_(std::exchange(other.what_, nullptr)) {}
    posted& operator=(posted&&) = delete;
    TURNSTILE_HOT ~posted()
    {
        if (what_) [[unlikely]]
            drop();
    }

    void operator()() { std::exchange(what_, nullptr)->invoke(); }

private:
    TURNSTILE_COLD void drop() noexcept
    {
        if (what_ == current.what)
            current.dropped = true;
        else
            what_->destroy();
    }

    intrusive_task* what_;
};

// A context queues what it is given in one piece of memory, which p brings along. A strand
// needs a second one, for itself, and would ask the same allocator for it: it and executors
// we do not know use their own.
template <class Executor>
constexpr bool queues_in_one_piece =
    std::is_same_v<Executor, io_executor> || std::is_same_v<Executor, pool_executor>;

template <class Relationship>
void submit(std::monostate, Relationship, intrusive_task&)
{
}

template <class Executor, class Relationship>
TURNSTILE_HOT void submit(const Executor& executor, Relationship relationship, intrusive_task& p)
{
    const auto never = [&] {
        return asio::prefer(asio::require(executor, execution::blocking.never), relationship);
    };
    if constexpr (queues_in_one_piece<Executor>) {
        using memory = buffer_allocator<void, intrusive_task::memory_size>;
        asio::prefer(never(), execution::allocator(memory(p.memory()))).execute(posted(p));
    } else {
        posted function(p); // made first: it says so if there is no memory for the executor
        never().execute(std::move(function));
    }
}

template <class Executors, class Relationship>
TURNSTILE_COLD bool post_to_other(const Executors& executors, Relationship relationship,
                                  intrusive_task& p) noexcept
{
    if (std::holds_alternative<std::monostate>(executors))
        return false;
    const hand_over outer = std::exchange(current, hand_over{&p, false});
    try {
        std::visit([&](const auto& executor) { submit(executor, relationship, p); }, executors);
    } catch (...) {
        // Not a word on whether it was queued: a strand throws after that, too.
    }
    return !std::exchange(current, outer).dropped;
}

template <class Executors, class Relationship>
TURNSTILE_HOT bool post_to(const Executors& executors, Relationship relationship,
                           intrusive_task& p) noexcept
{
    const auto* io = std::get_if<io_executor>(&executors);
    if (!io) [[unlikely]]
        return post_to_other(executors, relationship, p);
    submit(*io, relationship, p); // in p's memory: this does not fail
    return true;
}

void track(std::monostate, work_guard&) {}

template <class Executor>
void track(const Executor& executor, work_guard& work)
{
    work.track(asio::prefer(executor, execution::outstanding_work.tracked));
}

template <class Inner>
void track(const asio::strand<Inner>& strand, work_guard& work)
{
    posting_executor(strand.get_inner_executor()).track_in(work);
}

// The io_context's executor that this executor is, or is a strand of; null if there is none.
const io_executor* io_executor_of(const io_executor& executor) noexcept { return &executor; }

template <class Executor>
const io_executor* io_executor_of(const Executor&) noexcept
{
    return nullptr;
}

const io_executor* io_executor_of(const asio::any_io_executor& executor) noexcept
{
    return executor.target<io_executor>();
}

bool has_stopped_at(std::monostate) noexcept { return false; }

template <class Executor>
bool has_stopped_at(const Executor& executor) noexcept
{
    const io_executor* const io = io_executor_of(executor);
    return io && asio::query(*io, execution::context).stopped();
}

template <class Inner>
bool has_stopped_at(const asio::strand<Inner>& strand) noexcept
{
    const Inner inner = strand.get_inner_executor();
    return has_stopped_at(inner);
}

template <class Executor>
bool is_left(const Executor&) noexcept
{
    return false;
}

bool is_left(const io_executor& executor) noexcept
{
    return !executor.running_in_this_thread() && !has_stopped_at(executor);
}

template <class Inner>
bool is_left(const asio::strand<Inner>& strand) noexcept
{
    const Inner inner = strand.get_inner_executor();
    return io_executor_of(inner) && !strand.running_in_this_thread() && !has_stopped_at(inner);
}

} // namespace

posting_executor::posting_executor(const asio::any_io_executor& executor)
    : executor_([&]() -> any_of {
          if (const auto* io = executor.target<io_executor>())
              return *io;
          if (const auto* io_strand = executor.target<asio::strand<io_executor>>())
              return *io_strand;
          if (const auto* any_strand = executor.target<asio::strand<asio::any_io_executor>>())
              return *any_strand;
          if (const auto* pool = executor.target<pool_executor>())
              return *pool;
          if (const auto* pool_strand = executor.target<asio::strand<pool_executor>>())
              return *pool_strand;
          return executor;
      }())
{
}

bool posting_executor::is_other(const asio::any_io_executor& executor) const noexcept
{
    return *this == posting_executor(executor);
}

bool posting_executor::post(intrusive_task& p) const noexcept
{
    return post_to(executor_, execution::relationship.fork, p);
}

bool posting_executor::post_next(intrusive_task& p) const noexcept
{
    return post_to(executor_, execution::relationship.continuation, p);
}

void posting_executor::track_in(work_guard& work) const
{
    if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]]
        return detail::track(*io, work);
    std::visit([&](const auto& executor) { detail::track(executor, work); }, executor_);
}

bool posting_executor::is_left_while_running() const noexcept
{
    return std::visit([](const auto& executor) { return is_left(executor); }, executor_);
}

bool posting_executor::has_stopped() const noexcept
{
    if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]]
        return has_stopped_at(*io);
    return std::visit([](const auto& executor) { return has_stopped_at(executor); }, executor_);
}

} // namespace turnstile::inline v0_1::detail
