// SPDX-License-Identifier: BSL-1.0
// Handlers that record their completion. A handler must be invoked exactly once, and not be
// destroyed before.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <utility>

namespace kit {

namespace asio = boost::asio;
using turnstile::error_code;

enum class dropping { is_an_error, is_expected };

// The completion of one operation. Its handler is move-only.
class completion {
    struct record {
        dropping policy;
        int calls;
        bool dropped;
        int order;
        error_code error;
    };

public:
    explicit completion(dropping policy = dropping::is_an_error)
        : record_(std::make_shared<record>(record{policy, 0, false, -1, {}}))
    {
    }

    // The part of a handler that records the call.
    class watch {
    public:
        explicit watch(std::shared_ptr<record> r) noexcept : record_(std::move(r)) {}
        watch(watch&&) noexcept = default;
        watch& operator=(watch&&) noexcept = default;
        ~watch()
        {
            if (!record_ || record_->calls != 0)
                return;
            record_->dropped = true;
            if (record_->policy == dropping::is_an_error)
                BOOST_ERROR("a handler was destroyed without being invoked");
        }

        void called(error_code ec)
        {
            static int clock = 0;
            BOOST_TEST(record_->calls == 0, "a handler was invoked twice");
            ++record_->calls;
            record_->error = ec;
            record_->order = clock++;
        }

    private:
        std::shared_ptr<record> record_;
    };

    template <class OnSuccess>
    class handler_type {
    public:
        handler_type(watch w, OnSuccess f) : watch_(std::move(w)), on_success_(std::move(f)) {}

        template <class... Values>
        void operator()(error_code ec, Values... values)
        {
            watch_.called(ec);
            if (!ec)
                on_success_(std::move(values)...);
        }

    private:
        watch watch_;
        OnSuccess on_success_;
    };

    watch watched() const { return watch(record_); }

    // Calls on_success with the values if there is no error; otherwise the values are dropped.
    template <class OnSuccess>
    handler_type<OnSuccess> handler(OnSuccess on_success) const
    {
        return {watched(), std::move(on_success)};
    }

    bool done() const { return record_->calls != 0; }
    bool succeeded() const { return done() && !record_->error; }
    bool aborted() const { return done() && record_->error == asio::error::operation_aborted; }
    bool dropped() const { return record_->dropped; }
    error_code error() const { return record_->error; }
    // Whether this operation completed before the other one.
    bool before(const completion& other) const { return record_->order < other.record_->order; }

private:
    std::shared_ptr<record> record_;
};

} // namespace kit
