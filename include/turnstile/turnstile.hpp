// Everything.
#pragma once

#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/format.hpp>
#include <turnstile/core/operation.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/resilience/timeout.hpp>
#include <turnstile/sync/auto_reset_event.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/version.hpp>
