// SPDX-License-Identifier: BSL-1.0
// A waiting operation as the contract tests see it: one abstract class for all of them, so
// that a test is compiled once, and not once for each operation.
#pragma once

#include "kit/completion.hpp"
#include "kit/failing_allocator.hpp"

#include <turnstile/core/config.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#if TURNSTILE_TEST_HAS_CONTEXT
#    include <boost/asio/spawn.hpp>
#endif
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace contract {

namespace asio = boost::asio;
using turnstile::error_code;

using io_executor = asio::io_context::executor_type;
using io_strand = asio::strand<io_executor>;

// The part of a handler that is the test's. What the operation was given has been consumed
// by the time `then` is called.
class operation {
public:
    using continuation = std::function<void(error_code)>;

    operation(const kit::completion& c, continuation then = nullptr)
        : watch_(c.watched()), then_(std::move(then))
    {
    }
    // Watched by nobody, which is cheaper where there are very many.
    explicit operation(continuation then) : then_(std::move(then)) {}

    operation&& with(asio::cancellation_slot slot) &&
    {
        slot_ = slot;
        return std::move(*this);
    }
    asio::cancellation_slot slot() const noexcept { return slot_; }

    void called(error_code ec)
    {
        if (watch_)
            watch_->called(ec);
    }
    void finish(error_code ec)
    {
        if (then_)
            then_(ec);
    }

private:
    std::optional<kit::completion::watch> watch_;
    asio::cancellation_slot slot_;
    continuation then_;
};

// What a coroutine was given: consumed, or given back by dropping it.
class taken {
public:
    struct values {
        virtual ~values() = default;
        virtual void consume() = 0;
    };

    taken() = default;
    explicit taken(error_code ec) : error_(ec) {}
    explicit taken(std::unique_ptr<values> v) : values_(std::move(v)) {}

    error_code error() const noexcept { return error_; }
    void consume()
    {
        BOOST_TEST_REQUIRE(values_);
        std::exchange(values_, nullptr)->consume();
    }

private:
    error_code error_;
    std::unique_ptr<values> values_;
};

// What a coroutine can say to wait. Each is a path of its own.
enum class by {
    default_token,
    use_awaitable,
    as_tuple,
    redirect_error,
    deferred,
    as_tuple_deferred,
};

class subject {
public:
    virtual ~subject() = default;

    // Each kind of handler is a path of its own: without an executor, with one of each kind
    // that is treated differently, with an allocator, with an immediate executor.
    virtual void start(operation op) = 0;
    virtual void start_on(const io_executor& executor, operation op) = 0;
    virtual void start_on(const io_strand& executor, operation op) = 0;
    virtual void start_on(const asio::any_io_executor& executor, operation op) = 0;
    virtual void start_on(const asio::any_completion_executor& executor, operation op) = 0;
    virtual void start_on(const asio::system_executor& executor, operation op) = 0;
    virtual void start_in(kit::allocation_plan& memory, operation op) = 0;
#if TURNSTILE_HAS_IMMEDIATE_EXECUTOR
    virtual void start_immediate(const asio::system_executor& executor,
                                 kit::allocation_plan& memory, operation op) = 0;
#endif

    // An error is thrown by those that throw, and in the result of the others.
    virtual asio::awaitable<taken> wait(by token) = 0;
#if TURNSTILE_TEST_HAS_CONTEXT
    virtual taken wait(const asio::yield_context& yield) = 0;
#endif
    // Returns what gets the future's result.
    virtual std::function<taken()> start_future() = 0;
    virtual void start_detached() = 0;

    virtual bool try_op() = 0;
    virtual void grant() = 0;
    virtual std::size_t available() const = 0;
    virtual asio::any_io_executor executor() const = 0;
    // What the operation's initiation says is its executor.
    virtual asio::any_io_executor initiation_executor() = 0;
    virtual void destroy() = 0;
};

using subject_ptr = std::shared_ptr<subject>;

// A token that starts nothing, and returns the executor of the initiation.
struct ask_for_executor {};

// A subject's name, its traits (see subjects.hpp), and how to make one.
struct kind {
    std::string name;
    bool is_confined;
    bool is_broadcast;
    bool stays_granted; // a broadcast that goes on once granted
    bool keeps_grants;
    bool order_is_fifo;
    bool order_is_strict;
    bool is_reusable;
    bool can_try;
    bool rebinds_executor;
    bool uses_its_executors_default_token;
    std::size_t capacity;
    std::size_t max_waiters;
    std::vector<std::string> exempt_from;
    std::function<subject_ptr(const asio::any_io_executor&)> make;

    bool has_several_waiters() const { return max_waiters > 1; }
    // As many waiters as a test would like, if there may be so many.
    std::size_t up_to(std::size_t waiters) const { return std::min(waiters, max_waiters); }

    // For the next operation after one that has completed, or beside one that waits: the same
    // subject, unless that is used up, or has no room for another.
    subject_ptr after(const subject_ptr& s) const { return is_reusable ? s : make(s->executor()); }
    subject_ptr beside(const subject_ptr& s) const
    {
        return has_several_waiters() ? s : make(s->executor());
    }
};

// All subjects that were enrolled, by ENROLL_SUBJECTS.
inline std::vector<kind>& kinds()
{
    static std::vector<kind> all;
    return all;
}

using property_test = void (*)(const kind&);

// One property: a test suite, with a case for each subject it makes sense for. It is filled
// when Boost.Test sets up its tree; by then every subject has been enrolled.
class property final : public boost::unit_test::test_unit_generator {
public:
    struct place {
        const char* name;
        const char* file;
        std::size_t line;
    };

    property(place where, property_test test, bool (*makes_sense)(const kind&))
        : where_(where), test_(test), makes_sense_(makes_sense)
    {
    }

    boost::unit_test::test_unit* next() const override
    {
        if (std::exchange(done_, true))
            return nullptr;
        auto* suite = new boost::unit_test::test_suite(where_.name, where_.file, where_.line);
        for (const kind& k : kinds()) {
            const bool exempt =
                std::count(k.exempt_from.begin(), k.exempt_from.end(), where_.name) != 0;
            if (makes_sense_(k) && !exempt)
                suite->add(boost::unit_test::make_test_case([test = test_, &k] { test(k); }, k.name,
                                                            where_.file, where_.line));
        }
        return suite;
    }

    static int enroll(place where, property_test test, bool (*makes_sense)(const kind&))
    {
        boost::unit_test::framework::current_auto_test_suite().add(
            boost::shared_ptr<boost::unit_test::test_unit_generator>(
                new property(where, test, makes_sense)),
            boost::unit_test::decorator::collector_t::instance());
        return 0;
    }

private:
    place where_;
    property_test test_;
    bool (*makes_sense_)(const kind&);
    mutable bool done_ = false;
};

// A property of every subject, or of those for which the condition holds. Its body, which
// follows, is a function of `kind`.
#define CONTRACT(name) CONTRACT_WHERE(name, true)
#define CONTRACT_WHERE(name, condition)                                         \
    void name(const contract::kind&);                                           \
    [[maybe_unused]] const int name##_enrolled = contract::property::enroll(    \
        {#name, __FILE__, __LINE__}, &name,                                     \
        []([[maybe_unused]] const contract::kind& kind) { return condition; }); \
    void name(const contract::kind& kind)

} // namespace contract

template <class... Signatures>
class boost::asio::async_result<contract::ask_for_executor, Signatures...> {
public:
    template <class Initiation, class... Args>
    static any_io_executor initiate(Initiation&& initiation, contract::ask_for_executor, Args&&...)
    {
        if constexpr (requires { typename std::decay_t<Initiation>::executor_type; })
            return initiation.get_executor();
        else
            return any_io_executor();
    }
};
