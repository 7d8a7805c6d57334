// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/posting_executor.hpp>
#include <turnstile/detail/post/serial_executor.hpp>
#include <turnstile/detail/post/tasks.hpp>

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

// The task that this thread is passing to an executor, and whether the executor has dropped it,
// with or without an exception. Then the task remains the caller's.
struct submission {
    const intrusive_task* task = nullptr;
    bool dropped = false;
};
constinit thread_local submission current;

// The function object that an executor queues. It owns its task: an executor that destroys it
// without running it, because its context is destroyed, destroys the task.
class posted_function {
public:
    explicit posted_function(intrusive_task& task) noexcept : task_(&task) {}
    posted_function(posted_function&& other) noexcept : task_(std::exchange(other.task_, nullptr))
    {
    }
    posted_function& operator=(posted_function&&) = delete;
    TURNSTILE_HOT ~posted_function()
    {
        if (task_) [[unlikely]]
            drop();
    }

    void operator()() { std::exchange(task_, nullptr)->invoke(); }

private:
    TURNSTILE_COLD void drop() noexcept
    {
        if (task_ == current.task)
            current.dropped = true;
        else
            task_->destroy();
    }

    intrusive_task* task_;
};

// An io_context and a thread_pool queue a function in one piece of memory, which the task contains.
// A strand needs a second piece and would take it from the same allocator, so strands and executors
// that Asio does not ship use their own memory.
template <class Executor>
constexpr bool queues_in_one_piece =
    std::is_same_v<Executor, io_executor> || std::is_same_v<Executor, pool_executor>;

template <class Relationship>
void submit(std::monostate, Relationship, intrusive_task&)
{
}

template <class Executor, class Relationship>
TURNSTILE_HOT void submit(const Executor& executor, Relationship relationship, intrusive_task& task)
{
    const auto never = [&] {
        return asio::prefer(asio::require(executor, execution::blocking.never), relationship);
    };
    if constexpr (queues_in_one_piece<Executor>) {
        using memory = buffer_allocator<void, intrusive_task::memory_size>;
        asio::prefer(never(), execution::allocator(memory(task.memory())))
            .execute(posted_function(task));
    } else {
        // Made first: its destructor reports that the executor has no memory.
        posted_function function(task);
        never().execute(std::move(function));
    }
}

template <class Executors, class Relationship>
TURNSTILE_COLD bool post_to_other(const Executors& executors, Relationship relationship,
                                  intrusive_task& task) noexcept
{
    if (std::holds_alternative<std::monostate>(executors))
        return false;
    const submission outer = std::exchange(current, submission{&task, false});
    try {
        std::visit([&](const auto& executor) { submit(executor, relationship, task); }, executors);
    } catch (...) {
        // This does not say whether the task was queued: a strand may throw after that, too.
    }
    return !std::exchange(current, outer).dropped;
}

template <class Executors, class Relationship>
TURNSTILE_HOT bool post_to(const Executors& executors, Relationship relationship,
                           intrusive_task& task) noexcept
{
    const auto* io = std::get_if<io_executor>(&executors);
    if (!io) [[unlikely]]
        return post_to_other(executors, relationship, task);
    submit(*io, relationship, task); // does not fail, because the task contains the memory
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

// The executor if it is that of an io_context, else null.
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
bool is_running_elsewhere_at(const Executor&) noexcept
{
    return false;
}

bool is_running_elsewhere_at(const io_executor& executor) noexcept
{
    return !executor.running_in_this_thread() && !has_stopped_at(executor);
}

template <class Inner>
bool is_running_elsewhere_at(const asio::strand<Inner>& strand) noexcept
{
    const Inner inner = strand.get_inner_executor();
    return io_executor_of(inner) && !strand.running_in_this_thread() && !has_stopped_at(inner);
}

} // namespace

posting_executor::posting_executor(const asio::any_io_executor& executor)
    : executor_([&]() -> executor_variant {
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

bool posting_executor::post(intrusive_task& task) const noexcept
{
    return post_to(executor_, execution::relationship.fork, task);
}

bool posting_executor::post_continuation(intrusive_task& task) const noexcept
{
    return post_to(executor_, execution::relationship.continuation, task);
}

void posting_executor::track_in(work_guard& work) const
{
    if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]]
        return detail::track(*io, work);
    std::visit([&](const auto& executor) { detail::track(executor, work); }, executor_);
}

bool posting_executor::is_running_elsewhere() const noexcept
{
    return std::visit([](const auto& executor) { return is_running_elsewhere_at(executor); },
                      executor_);
}

bool posting_executor::is_inner_of(const asio::any_io_executor& executor) const noexcept
{
    const auto is_on_this = [&](const auto* serial) {
        return serial && *this == posting_executor(serial->get_inner_executor());
    };
    return is_on_this(executor.target<serial_executor<io_executor>>()) ||
           is_on_this(executor.target<serial_executor<pool_executor>>());
}

bool posting_executor::has_stopped() const noexcept
{
    if (const auto* io = std::get_if<io_executor>(&executor_)) [[likely]]
        return has_stopped_at(*io);
    return std::visit([](const auto& executor) { return has_stopped_at(executor); }, executor_);
}

} // namespace turnstile::inline v0_1::detail
