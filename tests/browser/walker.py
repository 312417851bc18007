"""A person who clicks their way through the admin, and how many clicks it took."""


class Walker:
    """Counts clicks; typing is no click."""

    def __init__(self, page):
        self.page = page
        self.clicks = 0

    def click(self, role, name, *, within="body", exact=True):
        self.page.locator(within).get_by_role(role, name=name, exact=exact).first.click()
        self.clicks += 1

    def click_at(self, place):
        """Click on what a locator found."""
        place.click()
        self.clicks += 1

    def open_agent(self, handle):
        """From any page to the page of an agent, by the navigation."""
        self.click("link", "Agents", within="#nav-sidebar-apps")
        self.click("link", handle, within="#result_list")
