"""The browser, the company and its people, as the browser tests of the suite have them."""

from tests.browser.conftest import browser, company

__all__ = ["browser", "company"]
