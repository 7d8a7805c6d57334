// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/post/serial_executor.hpp>

#include <mutex>

namespace turnstile::inline v0_1::detail {

constinit thread_local serial_queue::running* serial_queue::innermost_ = nullptr;

namespace {

// The functions that one drain runs, at most: other work of the context gets its turn, too.
constexpr int drain_limit = 128;

// Guards the lists of all services, because a queue and its service may be destroyed in any order.
// Queues are seldom made and destroyed.
constinit spin_mutex links_mutex;

} // namespace

serial_queue::running::running(serial_queue& queue) noexcept : queue_(&queue), outer_(innermost_)
{
    innermost_ = this;
}

serial_queue::running::~running()
{
    innermost_ = outer_;
    queue_->leave();
}

serial_queue::~serial_queue()
{
    drop_all();
    serial_service::remove(*this);
}

bool serial_queue::try_add_reference() noexcept
{
    int now = references_.load(std::memory_order_relaxed);
    while (now != 0 && !references_.compare_exchange_weak(now, now + 1, std::memory_order_relaxed))
        continue;
    return now != 0;
}

bool serial_queue::is_current() const noexcept
{
    for (const running* r = innermost_; r; r = r->outer_) {
        if (r->queue_ == this)
            return true;
    }
    return false;
}

bool serial_queue::may_run_here() const noexcept
{
    if (const auto* io = std::get_if<io_executor>(&inner_))
        return io->running_in_this_thread();
    return std::get_if<pool_executor>(&inner_)->running_in_this_thread();
}

bool serial_queue::try_enter() noexcept
{
    const std::lock_guard lock(mutex_);
    return !std::exchange(is_busy_, true);
}

void serial_queue::push(serial_node& node) noexcept
{
    bool was_busy = true;
    {
        std::unique_lock lock(mutex_);
        if (is_shut_down_) {
            lock.unlock();
            return node.run(task_action::destroy);
        }
        (first_ ? last_->next : first_) = &node;
        last_ = &node;
        was_busy = std::exchange(is_busy_, true);
    }
    if (!was_busy)
        post_drain();
}

serial_node* serial_queue::pop() noexcept
{
    const std::lock_guard lock(mutex_);
    serial_node* const node = first_;
    if (node)
        first_ = std::exchange(node->next, nullptr);
    return node;
}

void serial_queue::leave() noexcept
{
    bool is_busy = false;
    bool is_kept = false;
    {
        const std::lock_guard lock(mutex_);
        is_busy = is_busy_ = first_ != nullptr;
        if (!is_busy)
            is_kept = std::exchange(is_given_back_, false) && !is_shut_down_;
    }
    if (is_kept)
        service_->keep(this); // the context runs this thread, so its service exists
    else if (is_busy)
        post_drain();
}

// The posted drain holds a reference to the queue.
void serial_queue::post_drain() noexcept
{
    intrusive_ptr_add_ref(this);
    posting_.post(*this); // does not fail, because the task contains the memory
}

void serial_queue::run_drain(intrusive_task& task, task_action action)
{
    auto& self = static_cast<serial_queue&>(task);
    const pointer keep(&self, false);
    if (action == task_action::destroy)
        return self.drop_all();
    const running scope(self);
    for (int n = 0; n != drain_limit; ++n) {
        serial_node* const node = self.pop();
        if (!node)
            return;
        node->run(task_action::invoke);
    }
}

void serial_queue::drop_all() noexcept
{
    while (serial_node* const node = pop())
        node->run(task_action::destroy);
}

void serial_queue::shut_down() noexcept
{
    {
        const std::lock_guard lock(mutex_);
        is_shut_down_ = true;
    }
    drop_all();
}

asio::execution_context::id serial_service::id;

serial_service::serial_service(asio::execution_context& context)
    : asio::execution_context::service(context)
{
    idle_.reserve(max_idle);
}

serial_queue::pointer serial_service::take_idle() noexcept
{
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
        return nullptr;
    serial_queue::pointer queue(std::move(idle_.back()));
    idle_.pop_back();
    return queue;
}

void serial_service::give_back(serial_queue::pointer queue) noexcept
{
    {
        const std::lock_guard lock(queue->mutex_);
        queue->is_given_back_ = queue->is_busy_;
        if (queue->is_given_back_)
            return;
    }
    keep(std::move(queue));
}

void serial_service::keep(serial_queue::pointer queue) noexcept
{
    const std::lock_guard lock(mutex_);
    if (!is_shut_down_ && idle_.size() < max_idle)
        idle_.push_back(std::move(queue));
}

void serial_service::add(serial_queue& queue) noexcept
{
    const std::lock_guard lock(links_mutex);
    queue.next_ = queues_;
    if (queues_)
        queues_->previous_ = &queue;
    queues_ = &queue;
}

// A queue may outlive its context, and is then in no list.
void serial_service::remove(serial_queue& queue) noexcept
{
    const std::lock_guard lock(links_mutex);
    if (queue.service_)
        queue.service_->unlink(queue);
}

void serial_service::unlink(serial_queue& queue) noexcept
{
    (queue.previous_ ? queue.previous_->next_ : queues_) = queue.next_;
    if (queue.next_)
        queue.next_->previous_ = queue.previous_;
    queue.service_ = nullptr;
}

serial_queue::pointer serial_service::unlink_first() noexcept
{
    const std::lock_guard lock(links_mutex);
    while (queues_) {
        serial_queue& queue = *queues_;
        unlink(queue);
        if (queue.try_add_reference()) // otherwise its destructor has begun
            return serial_queue::pointer(&queue, false);
    }
    return nullptr;
}

void serial_service::shutdown()
{
    std::vector<serial_queue::pointer> idle;
    {
        const std::lock_guard lock(mutex_);
        is_shut_down_ = true;
        idle.swap(idle_);
    }
    while (const serial_queue::pointer queue = unlink_first())
        queue->shut_down();
}

} // namespace turnstile::inline v0_1::detail
