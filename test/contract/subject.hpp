// SPDX-License-Identifier: BSL-1.0
// A waiting operation under one abstract interface, so that a contract test is compiled once, and
// not once for each operation.
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

// The test's part of a handler. `then` is called after the result has been consumed.
class operation {
public:
    using continuation = std::function<void(error_code)>;

    operation(const kit::completion& c, continuation then = nullptr)
        : watch_(c.watched()), then_(std::move(then))
    {
    }
    // Without a completion, which is cheaper for very many operations.
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

// The result of a coroutine's wait. Dropping it instead of consuming it releases it.
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

// The completion tokens of a coroutine. Each is a separate path through the library.
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

    // Each kind of handler is a separate path: without an executor, with an executor of each type
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

    // Throws an error with the tokens that throw; with the others the error is in the result.
    virtual asio::awaitable<taken> wait(by token) = 0;
#if TURNSTILE_TEST_HAS_CONTEXT
    virtual taken wait(const asio::yield_context& yield) = 0;
#endif
    // Returns a function that gets the future's result.
    virtual std::function<taken()> start_future() = 0;
    virtual void start_detached() = 0;

    virtual bool try_op() = 0;
    virtual void grant() = 0;
    virtual std::size_t available() const = 0;
    virtual asio::any_io_executor executor() const = 0;
    // The executor of the operation's initiation.
    virtual asio::any_io_executor initiation_executor() = 0;
    virtual void destroy() = 0;
};

using subject_ptr = std::shared_ptr<subject>;

// A token that starts nothing, and returns the executor of the initiation.
struct executor_query {};

// A subject's name, its traits (see subjects.hpp), and how to make one.
struct kind {
    std::string name;
    bool is_confined;
    bool is_broadcast;
    bool stays_granted; // a broadcast whose grant remains
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
    // The number of waiters that a test asks for, or the maximum.
    std::size_t up_to(std::size_t waiters) const { return std::min(waiters, max_waiters); }

    // The subject for the next operation, after one that has completed or beside one that waits:
    // the same subject, unless it cannot be used again, or allows no further waiter.
    subject_ptr after(const subject_ptr& s) const { return is_reusable ? s : make(s->executor()); }
    subject_ptr beside(const subject_ptr& s) const
    {
        return has_several_waiters() ? s : make(s->executor());
    }
};

// Makes the next operation of the subject complete without waiting.
inline void grant_unless_available(subject& s)
{
    if (s.available() == 0)
        s.grant();
}

// All subjects that were enrolled with ENROLL_SUBJECTS.
inline std::vector<kind>& kinds()
{
    static std::vector<kind> all;
    return all;
}

using property_test = void (*)(const kind&);

// One property: a test suite with a case for each subject to which it applies. The suite is filled
// when Boost.Test sets up its tree; by then every subject has been enrolled.
class property final : public boost::unit_test::test_unit_generator {
public:
    struct place {
        const char* name;
        const char* file;
        std::size_t line;
    };

    property(place where, property_test test, bool (*applies)(const kind&))
        : where_(where), test_(test), applies_(applies)
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
            if (applies_(k) && !exempt)
                suite->add(boost::unit_test::make_test_case([test = test_, &k] { test(k); }, k.name,
                                                            where_.file, where_.line));
        }
        return suite;
    }

    static int enroll(place where, property_test test, bool (*applies)(const kind&))
    {
        boost::unit_test::framework::current_auto_test_suite().add(
            boost::shared_ptr<boost::unit_test::test_unit_generator>(
                new property(where, test, applies)),
            boost::unit_test::decorator::collector_t::instance());
        return 0;
    }

private:
    place where_;
    property_test test_;
    bool (*applies_)(const kind&);
    mutable bool done_ = false;
};

// Defines a property of every subject, or of the subjects for which the condition holds. Its body
// follows, as a function of `kind`.
#define CONTRACT(name) CONTRACT_WHERE(name, true)
#define CONTRACT_WHERE(name, condition)                                         \
    void name(const contract::kind&);                                           \
    [[maybe_unused]] const int name##_enrolled = contract::property::enroll(    \
        {#name, __FILE__, __LINE__}, &name,                                     \
        []([[maybe_unused]] const contract::kind& kind) { return condition; }); \
    void name(const contract::kind& kind)

} // namespace contract

template <class... Signatures>
class boost::asio::async_result<contract::executor_query, Signatures...> {
public:
    template <class Initiation, class... Args>
    static any_io_executor initiate(Initiation&& initiation, contract::executor_query, Args&&...)
    {
        if constexpr (requires { typename std::decay_t<Initiation>::executor_type; })
            return initiation.get_executor();
        else
            return any_io_executor();
    }
};
