int parent_own(void);
int parent_own(void)
{
    return 0;
}
