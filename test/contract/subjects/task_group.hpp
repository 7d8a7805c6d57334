// SPDX-License-Identifier: BSL-1.0
// The waiting operations of task_group: async_join, async_spawn and async_next. The children are
// operations that never complete; the subject ends a child by destroying its handler. This ends the
// child at once, on any thread, so a grant is decided before grant() returns. A child is
// outstanding work of its context, also where a property expects none: the executor of the groups
// tracks none.
#pragma once

#include "contract/subjects.hpp"

#include <turnstile/work/task_group.hpp>

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <array>
#include <concepts>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace contract {

// The handlers of children that have not ended.
class parked_children {
public:
    template <class Handler>
    void park(Handler handler)
    {
        auto parked = std::make_unique<parked_handler<Handler>>(std::move(handler));
        const std::scoped_lock lock(mutex_);
        handlers_.push_back(std::move(parked));
    }
    bool drop_one()
    {
        std::unique_ptr<any_handler> dropped;
        const std::scoped_lock lock(mutex_);
        if (handlers_.empty())
            return false;
        dropped = std::move(handlers_.front());
        handlers_.pop_front();
        return true;
    }
    void drop_all()
    {
        while (drop_one())
            continue;
    }

private:
    struct any_handler {
        virtual ~any_handler() = default;
    };
    template <class Handler>
    struct parked_handler final : any_handler {
        explicit parked_handler(Handler h) : handler(std::move(h)) {}
        Handler handler;
    };

    std::mutex mutex_;
    std::deque<std::unique_ptr<any_handler>> handlers_;
};

// Destroys the handlers together with their context, as every asynchronous operation does.
class parking_service final : public asio::execution_context::service {
public:
    using key_type = parking_service;
    inline static asio::execution_context::id id;

    explicit parking_service(asio::execution_context& context)
        : asio::execution_context::service(context)
    {
    }
    std::shared_ptr<parked_children> make()
    {
        auto children = std::make_shared<parked_children>();
        const std::scoped_lock lock(mutex_);
        std::erase_if(all_, [](const auto& c) { return c.expired(); });
        all_.push_back(children);
        return children;
    }

private:
    void shutdown() override
    {
        for (const auto& children : std::exchange(all_, {}))
            if (const auto c = children.lock())
                c->drop_all();
    }

    std::mutex mutex_;
    std::vector<std::weak_ptr<parked_children>> all_;
};

// An executor on which nothing is outstanding work.
class untracked_executor {
    using blocking_t = asio::execution::blocking_t;

public:
    // A template, because nothing else must be converted to an any_io_executor here.
    template <std::same_as<asio::any_io_executor> Inner>
    explicit untracked_executor(const Inner& inner) : inner_(inner)
    {
    }

    asio::execution_context& query(asio::execution::context_t) const noexcept
    {
        return asio::query(inner_, asio::execution::context);
    }
    untracked_executor require(blocking_t::never_t never) const
    {
        return untracked_executor(asio::any_io_executor(asio::require(inner_, never)));
    }
    untracked_executor require(blocking_t::possibly_t possibly) const
    {
        return untracked_executor(asio::any_io_executor(asio::prefer(inner_, possibly)));
    }
    template <class F>
    void execute(F f) const
    {
        inner_.execute(std::move(f));
    }
    friend bool operator==(const untracked_executor& a, const untracked_executor& b) noexcept
    {
        return a.inner_ == b.inner_;
    }

private:
    asio::any_io_executor inner_;
};

// Whether the groups use the executor of the test itself. The sweeps of allocations do: the posts
// to an executor that Asio does not ship may find no memory, and the asio::strand of Boost 1.81
// crashes if it finds none.
inline bool& children_are_work()
{
    static bool are_work = false;
    return are_work;
}

// An operation that does not complete.
template <class Signature>
struct parked_operation {
    std::shared_ptr<parked_children> children;

    template <class Token>
    auto operator()(Token&& token) const
    {
        return asio::async_initiate<Token, Signature>(
            [c = children](auto handler) { c->park(std::move(handler)); }, token);
    }
};

template <class Group, class Signature>
struct group_subject : subject_base<Group> {
    using base = subject_base<Group>;
    using child = parked_operation<Signature>;
    // These expect that a wait is outstanding work; see test/work/task_group_scenarios.cpp.
    static constexpr std::array<std::string_view, 3> exempt_from{
        "pending_waits_keep_run_alive", "every_type_is_honoured_and_none_is_not",
        "takes_a_handler_that_can_only_be_dispatched_to"};

    group_subject(const asio::any_io_executor& executor, std::size_t limit)
        : base(children_are_work() ? executor : asio::any_io_executor(untracked_executor(executor)),
               turnstile::task_group_options{.limit = limit,
                                             .policy = turnstile::join_policy::wait_all}),
          children(
              asio::use_service<parking_service>(asio::query(executor, asio::execution::context))
                  .make())
    {
    }
    group_subject(group_subject&&) = delete;
    ~group_subject()
    {
        if (this->object)
            destroy();
    }

    void destroy()
    {
        this->object->cancel();
        this->object.reset();
        children->drop_all();
    }

    std::shared_ptr<parked_children> children;
};

// A group with one child. A grant ends the child, as a cancelled one, which is no failure.
template <class Group, class Signature>
struct group_with_one_child : group_subject<Group, Signature> {
    using base = group_subject<Group, Signature>;
    static constexpr bool is_broadcast = true;

    explicit group_with_one_child(const asio::any_io_executor& executor)
        : base(executor, turnstile::task_group_options::unlimited)
    {
        this->object->spawn(typename base::child{this->children});
    }
    void grant()
    {
        this->object->cancel();
        this->children->drop_all();
    }
    std::size_t available() const { return this->object->stats().running == 0 ? 1 : 0; }
};

template <class Threading>
using plain_group = turnstile::basic_task_group<void, asio::any_io_executor, Threading>;
template <class Threading>
using group_of_numbers = turnstile::basic_task_group<int, asio::any_io_executor, Threading>;

template <class Threading>
struct group_join : group_with_one_child<plain_group<Threading>, void(error_code)> {
    using base = group_with_one_child<plain_group<Threading>, void(error_code)>;
    using base::base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_join(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_join(); }
    void consume() { BOOST_TEST(this->available() == 1U); }
};

// A wait that ends because no result can come any more.
template <class Threading>
struct group_next_none : group_with_one_child<group_of_numbers<Threading>, void(error_code, int)> {
    using base = group_with_one_child<group_of_numbers<Threading>, void(error_code, int)>;
    using base::base;

    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_next(std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_next(); }
    void consume(std::optional<int> result) { BOOST_TEST(!result.has_value()); }
};

// A grant ends a child, and each completed wait has started one.
template <class Threading>
struct group_spawn : group_subject<plain_group<Threading>, void(error_code)> {
    using base = group_subject<plain_group<Threading>, void(error_code)>;
    static constexpr std::size_t capacity = 5;
    static constexpr std::size_t places = 5;
    // A child that was started may find no memory and fail, which leaves its place free; and the
    // children that never end keep run() from returning.
    static constexpr std::array<std::string_view, 5> exempt_from{
        base::exempt_from[0], base::exempt_from[1], base::exempt_from[2],
        "what_need_not_wait_starts_wholly_or_not_at_all", "a_coroutine_gets_it_or_an_exception"};

    explicit group_spawn(const asio::any_io_executor& executor) : base(executor, places)
    {
        for (std::size_t i = 0; i != places; ++i)
            try_op();
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return this->object->async_spawn(new_child(), std::forward<Token>(token));
    }
    auto async_op() { return this->object->async_spawn(new_child()); }
    bool try_op() { return this->object->try_spawn(new_child()); }
    void grant() { BOOST_TEST(this->children->drop_one()); }
    std::size_t available() const { return places - this->object->stats().running; }
    void consume() {}

private:
    typename base::child new_child() { return {this->children}; }
};

// A grant is a child that completes at once with a result. Only a group that is confined to a
// strand has the result before grant() returns.
struct group_next : group_subject<group_of_numbers<strand_confined>, void(error_code, int)> {
    using base = group_subject<group_of_numbers<strand_confined>, void(error_code, int)>;
    static constexpr std::size_t capacity = 5;
    // A child that never ends keeps run() from returning.
    static constexpr std::array<std::string_view, 4> exempt_from{
        base::exempt_from[0], base::exempt_from[1], base::exempt_from[2],
        "a_coroutine_gets_it_or_an_exception"};

    explicit group_next(const asio::any_io_executor& executor)
        : base(executor, turnstile::task_group_options::unlimited)
    {
        this->object->spawn(child{children}); // a result can come
    }
    template <class Token>
    auto async_op(Token&& token)
    {
        return object->async_next(std::forward<Token>(token));
    }
    auto async_op() { return object->async_next(); }
    void grant()
    {
        object->spawn([](auto token) {
            return asio::async_initiate<decltype(token), void(error_code, int)>(
                [](auto handler) { std::move(handler)(error_code(), 7); }, token);
        });
    }
    std::size_t available() const { return object->stats().results; }
    void consume(std::optional<int> result) { BOOST_TEST(result.value_or(0) == 7); }
};

using task_group_subjects =
    std::tuple<group_join<thread_safe>, group_join<strand_confined>, group_spawn<thread_safe>,
               group_spawn<strand_confined>, group_next_none<thread_safe>,
               group_next_none<strand_confined>, group_next>;

} // namespace contract
